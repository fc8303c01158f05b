"""The least that a process with the Anthropic library needs: import it, ask once, print its resident MiB.

`python -m bench.raw_start URL KEY`; imports nothing of Hark.
"""

import asyncio
import sys
from pathlib import Path

import anthropic


async def _main(url: str, key: str) -> None:
    async with anthropic.AsyncAnthropic(api_key=key, base_url=url, max_retries=0) as client:
        stream = await client.messages.create(
            model="model", max_tokens=1000, messages=[{"role": "user", "content": "bench-0"}], stream=True
        )
        async for _ in stream:
            pass


def _resident() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("no VmRSS in /proc")


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
    sys.stdout.write(f"{_resident()}\n")
