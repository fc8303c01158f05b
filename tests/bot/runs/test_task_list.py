"""A task list is one message of its turn, which is edited in place."""

from pathlib import Path

from channels.outgoing import Action
from tests.service import running
from tests.standins.script import Call


def tasks(*states: str) -> dict[str, object]:
    return {"tasks": [{"text": f"step {n}", "state": state} for n, state in enumerate(states, 1)]}


async def test_it_is_sent_once_and_then_edited(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        for call in (tasks("doing", "open"), tasks("done", "doing")):
            hark.model.add(Call("task_list", call))
        hark.model.add("All is done.")
        await hark.write("do both")
        await hark.until(lambda: hark.channel.texts()[-1:] == ["All is done."], "the answer")
        await hark.delivered()
    sent = [(one.action, one.target, one.silent, one.body) for one in hark.channel.sent]
    assert sent == [
        (Action.SEND, "", True, "- ▶ **step 1**\n- ☐ step 2"),
        (Action.EDIT, "1", True, "- ☑ step 1\n- ▶ **step 2**"),
        (Action.SEND, "", False, "All is done."),
    ]


async def test_each_turn_has_its_own(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        for number in (1, 2):
            hark.model.add(Call("task_list", tasks("doing")))
            hark.model.add(f"Answer {number}.")
            await hark.write(f"do {number}")
            await hark.until(lambda n=number: hark.channel.texts()[-1:] == [f"Answer {n}."], "the answer")  # type: ignore[misc]
    assert [one.action for one in hark.channel.sent] == [Action.SEND] * 4


async def test_it_is_one_message(tmp_path: Path) -> None:
    async with running(tmp_path) as hark:
        hark.channel.rendered = lambda text: (text[:20], text[20:]) if "step" in text else (text,)
        hark.model.add(Call("task_list", tasks("doing", "open")))
        hark.model.add("Well.")
        await hark.write("do both")
        await hark.until(lambda: hark.channel.texts() == ["Well."], "the answer")
