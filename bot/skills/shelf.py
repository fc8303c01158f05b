"""Knows the skills of the workspace, and which of them the model is told of in a conversation.

A skill is used as an owner has looked at it: its digest, over all its files, is a row. Those that are there at the
first start count as looked at. When a file of one has changed, it is unloaded, which an owner is told in one line,
until an owner accepts it. That is looked for wherever skills are used, so none is used between a change and a look.

Hark's own skills, which lie in its package, are used where the configuration wants them and the workspace has none of
that name. They are part of Hark, so nobody has to look at them.

The list stays the same in a conversation that has one, unless the configuration changes, or a skill that it may have.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.errors import ToolError
from agent.skills import folder as folders
from agent.skills.manifest import FILE, Manifest, SkillError
from agent.tools.workspace import Workspace, printable
from bot.clock import Clock
from bot.config.skills import Skills
from bot.persistence.errors import StoreUnavailable
from bot.persistence.skills import SkillView
from bot.store.skills import SkillRows
from channels.sources import Source, sentence

FOLDER = "skills"
# Holds the folder of the skills that come with Hark.
_PACKAGE = Path(__file__).with_name("package")
# Seconds between two looks while nobody uses a skill.
LOOK = 10.0
# The most skills that are looked at.
MOST = 200
_NEW = "no owner has looked at it yet; `/skills accept {}` does"
_CHANGED = "it has changed since an owner looked at it; `/skills accept {}` loads it again"


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as it lies in the workspace."""

    name: str
    # What shows a change; empty where even that cannot be told.
    signs: folders.Signs
    # Of its files, and its head; empty and None: it cannot be used, because of the problem.
    digest: str = ""
    manifest: Manifest | None = None
    problem: str = ""


class Shelf:
    """The skills of one workspace.

    environ: where variables are looked for that skills need. tell: tells an owner, once per source.
    """

    def __init__(
        self,
        workspace: Path,
        settings: Skills,
        environ: Mapping[str, str],
        rows: SkillRows,
        clock: Clock,
        tell: Callable[[Source, str], Awaitable[None]],
    ) -> None:
        self.root = workspace / FOLDER
        # What the configuration says; exchanged by a reload.
        self.settings = settings
        # Whether the last look has found any. While there are none a turn asks for no more.
        self.has_some = False
        self._workspace = Workspace(workspace)
        self._environ = environ
        self._rows = rows
        self._clock = clock
        self._tell = tell
        self._found: dict[str, Skill] = {}
        self._bundled: dict[str, Skill] = {}
        self._pins: Mapping[str, str] | None = None
        self._told: set[Source] = set()
        self._looking = asyncio.Lock()

    async def begin(self) -> None:
        """Let the skills that are there at the first start count as looked at. Raises StoreUnavailable."""
        await self._look()
        self._pins, begun = await self._rows.pins()
        if not begun:
            await self._rows.begin({one.name: one.digest for one in self._found.values() if one.digest})
            self._pins, _ = await self._rows.pins()
        await self.check()

    async def serve(self) -> None:
        """Look now and then, so that an owner is told of a change also while no skill is used."""
        while True:
            await self._clock.sleep(LOOK)
            with suppress(StoreUnavailable):  # it is told with the next look
                await self.check()

    async def check(self) -> None:
        """Look what has changed, and tell an owner of it. Raises StoreUnavailable."""
        await self._look()
        for name in self.changed:
            one = self._found[name]
            source = sentence("skill", name, one.digest[:16], max((sign[-1] for sign in one.signs), default=0))
            if source not in self._told:
                await self._tell(source, f"I have unloaded the skill `{name}`: {_CHANGED.format(name)}.")
                self._told.add(source)

    @property
    def changed(self) -> tuple[str, ...]:
        """The names of skills that are not as an owner has looked at them."""
        pins = self._pins or {}
        return tuple(one.name for one in self._found.values() if pins.get(one.name, one.digest) != one.digest)

    async def sign(self) -> tuple[str, ...]:
        """Return what makes the list a new one for a conversation that has one already. Raises StoreUnavailable."""
        await self.check()
        said = (self.settings.model_dump_json(),) if self.settings != Skills() else ()
        return (*said, *self.changed) if self.has_some else ()

    def there(self, channel: str, *, owned: bool) -> Iterator[Manifest]:
        """Yield the skills of a conversation as of the last look. owned: nobody but owners writes there."""
        for one in self._all():
            if one.manifest and not self._why_not(one) and self._is_given(one.name, channel, owned=owned):
                yield one.manifest

    async def skills(self) -> list[SkillView]:
        """Return all skills with the reasons why some are not used. Raises StoreUnavailable."""
        await self._look()
        return [
            SkillView(one.name, one.manifest.line if one.manifest else "", self._why_not(one)) for one in self._all()
        ]

    async def accept(self, name: str, digest: str = "") -> None:
        """Note that an owner has looked at a skill, as it is or as the digest says. Raises SkillError."""
        await self._look()
        if (one := self._found.get(name)) is None:
            raise SkillError(f"There is no skill {name!r} in `{FOLDER}/` of the workspace.")
        if one.problem:
            raise SkillError(f"The skill `{name}` cannot be used: {one.problem}.")
        await self._rows.pin(name, digest or one.digest)
        self._pins, _ = await self._rows.pins()

    async def text(self, name: str, channel: str, *, owned: bool) -> tuple[Manifest, str]:
        """Return a skill and its whole SKILL.md, if a conversation has it. Raises SkillError or StoreUnavailable."""
        await self.check()
        there = {one.name: one for one in self.there(channel, owned=owned)}
        if name not in there:
            names = ", ".join(f"`{one}`" for one in there) or "none"
            raise SkillError(f"There is no skill {name!r} here: there are {names}, and /skills says why not others.")
        bundled = self._bundled.get(name)
        files = await asyncio.to_thread(folders.read, (_PACKAGE / FOLDER if bundled else self.root) / name)
        if folders.digest(files) != (bundled or self._found[name]).digest:
            raise SkillError(f"The skill `{name}` is being changed.")
        return there[name], files[FILE].content.decode(errors="replace")

    async def home(self, channel: str, parts: tuple[str, ...], *, owned: bool) -> Workspace | None:
        """Return where a file of a skill lies for a conversation; None: in its own folder, as any other file.

        parts: of its path, below `skills`. Raises ToolError where an owner has to look at the skill first.
        """
        await self.check()
        name = parts[0].casefold()
        if owned and name in self.changed:
            raise ToolError(f"The skill {name} is not loaded: {_CHANGED.format(name)}.")
        bundled = name in self._bundled
        if owned and not bundled:
            return None
        given = any(one.name == name for one in self.there(channel, owned=owned))
        return (Workspace(_PACKAGE) if bundled else self._workspace) if given else None

    def _all(self) -> list[Skill]:
        return sorted((*self._found.values(), *self._bundled.values()), key=lambda one: one.name)

    def _why_not(self, one: Skill) -> str:
        pin = (self._pins or {}).get(one.name)
        unpinned = (
            "" if pin == one.digest or one.name in self._bundled else (_CHANGED if pin else _NEW).format(one.name)
        )
        return why_unused(one, self.settings, self._environ) or unpinned

    def _is_given(self, name: str, channel: str, *, owned: bool) -> bool:
        on_channel: Collection[str] = self.settings.by_channel.get(channel, (name,))
        return name in on_channel and (owned or name in self.settings.guests)

    async def _look(self) -> None:
        wanted = self.settings.bundled
        if not (self.has_some or wanted or _is_there(self.root)):
            return
        async with self._looking:
            self._found = await asyncio.to_thread(scan, self.root, self._found)
            bundled = await asyncio.to_thread(scan, _PACKAGE / FOLDER, self._bundled) if wanted else {}
            self._bundled = {name: one for name, one in bundled.items() if name not in self._found}
            self.has_some = bool(self._found or self._bundled)
            if self._pins is None:
                self._pins, _ = await self._rows.pins()


def scan(root: Path, known: Mapping[str, Skill]) -> dict[str, Skill]:
    """Return the skills that lie in a folder, reading those alone that are not known. Blocking."""
    if not _is_there(root):
        return {}
    try:
        names = sorted(one.name for one in root.iterdir() if one.is_dir() and not one.name.startswith("."))[:MOST]
    except OSError:
        return {}
    found = (_seen(root / name, known.get(name)) for name in names)
    return {one.name: one for one in found}


def why_unused(one: Skill, settings: Skills, environ: Mapping[str, str]) -> str:
    """Return why a skill is not used, whatever an owner has looked at; empty: nothing is in its way."""
    if one.manifest is None:
        return one.problem
    if one.name in settings.disabled or one.name not in (settings.enabled or (one.name,)):
        return "the configuration has it off"
    missing = one.manifest.requires.missing(environ)
    return f"it needs {missing}" if missing else ""


def _is_there(root: Path) -> bool:
    return root.is_dir() and not root.is_symlink()


def _seen(folder: Path, known: Skill | None) -> Skill:
    name = folder.name
    signs: folders.Signs = ()
    try:
        signs = folders.signs(folder)
        if known and known.signs == signs:
            return known
        files = folders.read(folder)
        manifest = folders.manifest_of(files)
        if manifest.name != name:
            raise SkillError(f"its name is {manifest.name!r}, and that of its folder is not")
        if folders.signs(folder) != signs:
            signs = ()  # it is being changed, so the next look reads it again
            raise SkillError("it is being changed")
    except SkillError as error:
        return Skill(printable(name), signs, problem=printable(str(error)))
    return Skill(name, signs, folders.digest(files), manifest)
