"""Rate limits of the Discord stand-in: a bucket per route and top-level resource, the global limit, invalid requests.

`RateLimits()` has what real servers were seen to grant. Without one nothing is limited and the headers say so.
"""

import hashlib
import math
from dataclasses import dataclass, field

from tests.standins.discord_ledger import Json, Refusal, Rule

INVALID_REQUESTS = 10_000  # in ten minutes, then the proxy in front refuses everything


@dataclass(slots=True)
class Bucket:
    limit: int
    seconds: float
    used: int = 0
    resets: float = -math.inf


@dataclass(slots=True)
class RateLimits:
    """`per_route` are requests in seconds for each bucket, `single` those of routes by their name."""

    per_route: tuple[int, float] = (10, 5.0)
    single: dict[str, tuple[int, float]] = field(
        default_factory=lambda: {
            "POST /channels/{channel}/messages": (5, 5.0),
            "PATCH /channels/{channel}/messages/{message}": (5, 5.0),
            "DELETE /channels/{channel}/messages/{message}": (5, 1.0),
            "PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me": (1, 0.25),
        }
    )
    per_second: int = 50


@dataclass(slots=True)
class Limiter:
    """Counts what was asked. `early` are the buckets that a 429 has closed, until when."""

    limits: RateLimits | None = None
    buckets: dict[str, Bucket] = field(default_factory=dict)
    early: dict[str, float] = field(default_factory=dict)
    second: list[float] = field(default_factory=list)
    invalid: int = 0

    def admit(self, route: str, resource: str, now: float, wall: float, *, bound: bool) -> dict[str, str]:
        """Headers of the answer to one more request, or Refusal with 429. `bound` says that the global limit counts."""
        key = f"{route} {resource}"
        waits = self.early.get(key, -math.inf) - now
        if waits > 0:
            raise too_many(waits, self.headers(route, resource, now, wall), rule=Rule.EARLY)
        if self.limits is None:
            return self.headers(route, resource, now, wall)
        if bound:
            self.second = [at for at in self.second if at > now - 1]
            if len(self.second) >= self.limits.per_second:
                raise too_many(self.second[0] + 1 - now, scope="global")
            self.second.append(now)
        count, seconds = self.limits.single.get(route, self.limits.per_route)
        bucket = self.buckets.setdefault(key, Bucket(count, seconds))
        if now >= bucket.resets:
            bucket.used, bucket.resets = 0, now + bucket.seconds
        if bucket.used >= bucket.limit:
            self.early[key] = bucket.resets
            raise too_many(bucket.resets - now, self.headers(route, resource, now, wall))
        bucket.used += 1
        return self.headers(route, resource, now, wall)

    def close(self, route: str, resource: str, until: float) -> None:
        """A 429 that a test ordered: asking again before `until` is a violation."""
        self.early[f"{route} {resource}"] = until

    def headers(self, route: str, resource: str, now: float, wall: float) -> dict[str, str]:
        bucket = self.buckets.get(f"{route} {resource}", Bucket(1000, 1.0, 1, now + 1))
        after = max(0.0, bucket.resets - now)
        return {
            "X-RateLimit-Limit": str(bucket.limit),
            "X-RateLimit-Remaining": str(bucket.limit - bucket.used),
            "X-RateLimit-Reset": f"{wall + after:.3f}",
            "X-RateLimit-Reset-After": f"{after:.3f}",
            "X-RateLimit-Bucket": hashlib.md5(route.encode()).hexdigest(),
        }

    def count(self, status: int, headers: dict[str, str]) -> None:
        """401, 403 and 429 are invalid requests, those of a shared resource apart."""
        if status in (401, 403, 429) and headers.get("X-RateLimit-Scope") != "shared":
            self.invalid += 1


def too_many(
    seconds: float, headers: dict[str, str] | None = None, *, scope: str = "user", rule: Rule | None = None
) -> Refusal:
    """429 as documented; `scope` is user, global or shared."""
    words = "The resource is being rate limited." if scope == "shared" else "You are being rate limited."
    given = dict(headers or {}) | {"Retry-After": str(math.ceil(seconds)), "X-RateLimit-Scope": scope}
    if scope == "global":
        given["X-RateLimit-Global"] = "true"
    refusal = Refusal(429, 0, words, rule=rule, headers=given)
    body: Json = {"message": words, "retry_after": round(seconds, 3), "global": scope == "global"}
    refusal.body = body
    return refusal
