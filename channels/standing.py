"""How one account stands: what its health says, and its troubles, each said once until something is received again."""

import logging

from channels.base import Health, HealthState, Times


class Standing:
    """Of one account. health: what `Surface.health` tells."""

    def __init__(self, channel: str, times: Times) -> None:
        self.health = Health(HealthState.STARTING, times.now(), "Not started")
        self._channel = channel
        self._times = times
        self._said = ""
        self._log = logging.getLogger(f"channels.{channel}")

    @property
    def is_ready(self) -> bool:
        """Whether it is received."""
        return self.health.state is HealthState.READY

    def begin(self) -> None:
        """It begins to connect."""
        self.health = Health(HealthState.STARTING, self._times.now(), f"Connecting to {self._channel.title()}")

    def receive(self, sentence: str) -> bool:
        """It receives; whether it did not before."""
        self._said = ""
        if self.is_ready:
            return False
        self._log.info("%s: %s", self._channel, sentence)
        self.health = Health(HealthState.READY, self._times.now(), sentence)
        return True

    def fail(self, sentence: str, level: int = logging.WARNING) -> None:
        """It does not receive, for this reason. level: how loud that is said."""
        if sentence != self._said:
            self._said = sentence
            self._log.log(level, "%s: %s", self._channel, sentence)
        since = self.health.since if self.health.state is HealthState.DOWN else self._times.now()
        self.health = Health(HealthState.DOWN, since, sentence)

    def stop(self) -> None:
        """It receives nothing any more, as it was told to."""
        self.health = Health(HealthState.DOWN, self._times.now(), "Stopped")
