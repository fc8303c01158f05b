"""Makes all commands of the service, each by the feature that it belongs to, in the order of /help."""

from collections.abc import Sequence

from agent.tools.background import Background
from bot.approvals.commands import ApprovalCommands
from bot.background import commands as background_commands
from bot.background.control import Control
from bot.background.jobs import Jobs
from bot.children import commands as children_commands
from bot.children.subagents import SubAgents
from bot.commands import builtin
from bot.commands.registry import Command, Registry
from bot.config.model import Config
from bot.gateway.status import Status
from bot.gateway.usage import UsageReport
from bot.inbound import people_commands, queueing
from bot.inbound.pairing import Pairing
from bot.memory import command as memory_command
from bot.memory.filing import Filing
from bot.reload import config_command
from bot.reload.reload import Reload
from bot.restart import Restart
from bot.runs import (
    budget_waits,
    compact_command,
    context_command,
    fork_command,
    retry_command,
    send_command,
    settings_commands,
    tools_command,
)
from bot.runs.freezing import Freezer
from bot.runs.lanes import Lanes
from bot.runs.last_notes import LastNotes
from bot.runs.model_commands import ModelCommands
from bot.runs.specs import Specs
from bot.runs.stop_commands import StopCommands
from bot.runs.undo_commands import UndoCommands
from bot.sessions.commands import SessionCommands
from bot.skills import commands as skill_commands


def build(
    config: Config,
    offered: tuple[str, ...],
    status: Status,
    pairing: Pairing,
    approvals: ApprovalCommands,
    specs: Specs,
    running: Background,
    lanes: Lanes,
    jobs: Jobs,
    usage: UsageReport,
    transcripts: SessionCommands,
    restart: Restart,
    reload: Reload,
    subagents: SubAgents,
    others: Sequence[Command],
) -> Registry:
    """Make the registry. offered: models to choose from by a button. others: commands from outside of the service."""
    store, clock, prices = approvals.store, approvals.clock, specs.keeping.budgets.prices
    choosing = ModelCommands(store, specs.fleet, specs, offered, prices)
    notes = LastNotes(specs, store, lanes.runner)
    return builtin.build(
        config.agent.name,
        (
            status.command(),
            people_commands.whoami(pairing.people),
            *StopCommands(store, clock, running, approvals.requests, choosing, notes).build(),
            retry_command.build(store),
            *UndoCommands(store, clock, running, approvals.requests, approvals.outbox).build(),
            fork_command.build(store),
            *people_commands.build(pairing),
            *approvals.build(),
            *others,
            *Freezer(store, lanes, approvals.outbox, running, lambda: jobs.dispatcher.hurry()).build(),
            send_command.build(store),
            *settings_commands.build(store, speaks=config.speech.base_url is not None),
            queueing.command(lambda: reload.config.queue, specs.toolbox.messaging.conversations, store),
            *choosing.build(),
            usage.command(),
            budget_waits.build(store, clock, lanes.wake),
            tools_command.build(specs.toolbox, specs.rooms),
            context_command.build(specs, store, clock.stamp),
            *skill_commands.build(specs.rooms.skills, lambda key: specs.rooms.of(key).owned),
            memory_command.build(Filing(store.memories, specs.rooms), clock),
            compact_command.build(specs, store, lanes.runner.contexts),
            *transcripts.build(),
            *background_commands.build(jobs, Control(jobs.dispatcher)),
            restart.command(),
            children_commands.build(subagents, approvals.requests, running),
            config_command.build(reload),
        ),
        config.queue.stop_words,
    )
