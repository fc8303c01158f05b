"""`hark chat` in a terminal, as a person sees it: a real service, a real screen, a model that the test leads."""

import contextlib
import signal
import stat
from collections.abc import AsyncIterator
from pathlib import Path

from agent.message import ToolCall
from bot.persistence.approvals import SHOWN
from tests.asking import AskingTool
from tests.bot.cli.terminal_emulator import Program
from tests.bot.gateway.house import Call, House, house
from tests.forked import ENVIRON
from tests.watch import lanes_idle

CONSOLE = "agent:main:console:direct:local"
CTRL_C, CTRL_D = "\x03", "\x04"


def chat(at: House, rows: int = 24) -> Program:
    return Program(["chat"], at.folder, ENVIRON, rows)


@contextlib.asynccontextmanager
async def greeted(starting: Program) -> AsyncIterator[Program]:
    """A terminal that shows its first lines and waits for input."""
    async with starting as terminal:
        await terminal.until("test/puppet answers.")
        await terminal.until(lambda shown: shown.endswith("\n>"))
        yield terminal


async def ask(at: House, terminal: Program, text: str) -> Call:
    """Type a message; returns what the model is asked once the terminal listens to the answer.

    Words that came before are shown with the whole answer.
    """
    terminal.type(f"{text}\r")
    call = await at.model.called()
    await terminal.until("working …")
    return call


async def test_an_answer_is_shown_while_it_is_written_and_stands_once(tmp_path: Path) -> None:
    async with house(tmp_path) as at, greeted(chat(at)) as terminal:
        call = await ask(at, terminal, "hello")
        call.say("First **words**.")
        await terminal.until("First words.")
        call.say("\n\nThe rest.")
        await terminal.until("The rest.")
        call.finish("First **words**.\n\nThe rest.")
        shown = await terminal.until(lambda shown: "tokens" in shown and shown.endswith("\n>"))
        status = "test/puppet · 3 tokens in, 2 out"
        assert shown.split("\n")[1:] == ["", "> hello", "", "First words.", "", "The rest.", "", status, "", ">"]
        await lanes_idle()
        terminal.type(CTRL_D)
        assert await terminal.exit_code() == 0
        assert terminal.screen.lines[1:] == ["", "> hello", "", "First words.", "", "The rest."]
        assert len(at.stored.deliveries(state="sent")) == 1


async def test_an_answer_longer_than_the_screen_is_whole_and_stands_once(tmp_path: Path) -> None:
    words = [f"Paragraph {number}." for number in range(100)]
    async with house(tmp_path) as at, greeted(chat(at, rows=12)) as terminal:
        call = await ask(at, terminal, "tell")
        for number, word in enumerate(words):
            call.say(f"{word}\n\n")
            if number % 20 == 7:
                await terminal.until(word)
        call.finish("\n\n".join(words) + "\n\n")
        await terminal.until(lambda shown: "Paragraph 99." in shown and "working" not in shown)
        at.model.reply = "Yes."
        terminal.type("done?\r")

        def whole(shown: str) -> bool:
            """The next answer may be seen above the input line before the last block of this one is printed."""
            return "Yes." in shown and [line for line in shown.split("\n") if line.startswith("Paragraph")] == words

        await terminal.until(whole)


async def test_ctrl_c_ends_the_run_and_again_leaves(tmp_path: Path) -> None:
    async with house(tmp_path) as at, greeted(chat(at)) as terminal:
        call = await ask(at, terminal, "go on for ever")
        call.say("I begin")
        await terminal.until("I begin")
        terminal.type(CTRL_C)
        shown = await terminal.until("Stopped.")
        assert shown.count("I begin") == 1
        await terminal.until("Ctrl-C again to leave")
        assert len(at.stored.turns(outcome="aborted")) == 1
        terminal.type(CTRL_C)
        assert await terminal.exit_code() == 0


async def test_ctrl_c_on_a_line_with_text_only_clears_it_also_during_a_run(tmp_path: Path) -> None:
    async with house(tmp_path) as at, greeted(chat(at)) as terminal:
        call = await ask(at, terminal, "go on")
        call.say("I go")
        await terminal.until("I go")
        terminal.type("half a line")
        await terminal.until("> half a line")
        terminal.type(CTRL_C)
        await terminal.until(lambda shown: "half a line" not in shown)
        assert "again to leave" not in terminal.screen.text
        call.say(" on.")
        call.finish("I go on.")
        shown = await terminal.until("I go on.")
        assert "Stopped." not in shown


async def test_a_first_ctrl_c_is_forgotten_by_typing_and_by_time(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Yes.") as at, greeted(chat(at)) as terminal:
        terminal.type(CTRL_C)
        await terminal.until("Ctrl-C again to leave")
        terminal.type("x\x7f")
        await terminal.until(lambda shown: "again" not in shown)
        terminal.type(CTRL_C)
        await terminal.until("Ctrl-C again to leave")
        await terminal.until(lambda shown: "again" not in shown)
        terminal.type(f"there?{CTRL_C}{CTRL_C}")
        await terminal.until(lambda shown: "again to leave" in shown and "there" not in shown)
        terminal.type(CTRL_C)
        assert await terminal.exit_code() == 0


async def test_esc_ends_the_run_and_keeps_what_was_typed(tmp_path: Path) -> None:
    async with house(tmp_path, reply=None) as at, greeted(chat(at)) as terminal:
        call = await ask(at, terminal, "go on for ever")
        call.say("I begin")
        await terminal.until("I begin")
        terminal.type("one\x1b\rtwo")  # Alt-Enter is not Esc
        await terminal.until("> one\ntwo")
        assert at.stored.turns(outcome="aborted") == []
        terminal.type("\x1b")
        shown = await terminal.until(lambda shown: "Stopped." in shown and shown.endswith("> one\ntwo"))
        assert shown.count("I begin") == 1
        assert len(at.stored.turns(outcome="aborted")) == 1


async def test_quit_leaves_and_is_no_message(tmp_path: Path) -> None:
    for word in ("/quit", "/exit"):
        async with house(tmp_path) as at, greeted(chat(at)) as terminal:
            terminal.type(f"{word}\r")
            assert await terminal.exit_code() == 0
            assert at.stored.messages() == []


async def test_tab_completes_commands(tmp_path: Path) -> None:
    async with house(tmp_path) as at, greeted(chat(at)) as terminal:
        terminal.type("/hel\t")
        await terminal.until("> /help")
        terminal.type("\r")
        await terminal.until(lambda shown: "Alt-Enter begins a new line." in shown and "/quit leaves." in shown)


async def test_a_command_that_is_not_there_is_held_back_once_and_a_path_is_not(tmp_path: Path) -> None:
    async with house(tmp_path, reply="I see.") as at, greeted(chat(at)) as terminal:
        terminal.type("/hlep\r")
        await terminal.until("Unknown command; nearest is /help.")
        await terminal.until(lambda shown: shown.endswith("\n> /hlep"))
        assert at.stored.messages() == []
        terminal.type("\r")
        call = await at.model.called()
        assert call.request.messages[-1].text.endswith("\n/hlep")
        await terminal.until("I see.")
        terminal.type("/etc/hosts says what?\r")
        call = await at.model.called()
        assert call.request.messages[-1].text.endswith("\n/etc/hosts says what?")


async def test_stop_is_answered_once(tmp_path: Path) -> None:
    async with house(tmp_path) as at, greeted(chat(at)) as terminal:
        await ask(at, terminal, "work")
        terminal.type("/stop\r")
        await terminal.until(lambda shown: "Stopped." in shown and "working" not in shown)
        terminal.type("/status\r")
        shown = await terminal.until("This conversation idle")
        assert shown.count("Stopped.") == 1


async def test_a_second_terminal_sees_questions_and_answers(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Four.") as at, greeted(chat(at)) as first, greeted(chat(at)) as second:
        first.type("two and two?\r")
        shown = await second.until("Four.")
        assert shown.index("> two and two?") < shown.index("Four.")
        await first.until("Four.")
        second.type("and again?\r")
        shown = await first.until("> and again?")
        assert shown.count("two and two?") == 1
        shown = await second.until(lambda shown: shown.count("Four.") == 2)
        assert shown.count("> and again?") == 1


async def test_a_terminal_that_opens_again_shows_the_last_exchange(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Four.") as at:
        async with greeted(chat(at)) as terminal:
            for question in ("one and one?", "two and two?"):
                terminal.type(f"{question}\r")
                await terminal.until(lambda shown, asked=question: shown.partition(asked)[2].count("Four.") == 1)
            terminal.type(CTRL_D)
            await terminal.exit_code()
        async with chat(at) as terminal:
            shown = await terminal.until("Four.")
            assert [line for line in shown.split("\n") if line][1:4] == ["── Last time ──", "> two and two?", "Four."]
            assert "one and one" not in shown
            terminal.type("/new\r")
            await terminal.until("New conversation.")
            terminal.type(CTRL_D)
            await terminal.exit_code()
        async with greeted(chat(at)) as terminal:
            terminal.type("/status\r")
            await terminal.until("This conversation idle")
            assert "Four." not in terminal.screen.text


async def test_a_full_disk_costs_the_history_and_not_the_message(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Yes."), greeted(Program(["chat"], tmp_path, ENVIRON, blocks=0)) as terminal:
        for number in range(3):
            terminal.type(f"are you there {number}?\r")
            await terminal.until(lambda shown, number=number: shown.count("Yes.") == number + 1)
        assert "rror" not in terminal.screen.text
        assert terminal.screen.text.count("cannot be kept") == 1
        terminal.type("\x1b[A")
        await terminal.until(lambda shown: shown.endswith("> are you there 2?"))


async def test_what_was_shown_live_stays_when_the_terminal_is_told_to_end(tmp_path: Path) -> None:
    async with house(tmp_path) as at, greeted(chat(at)) as terminal:
        call = await ask(at, terminal, "tell")
        call.say("Half an answer")
        await terminal.until("Half an answer")
        terminal.send_signal(signal.SIGTERM)
        await terminal.exit_code()
        assert terminal.screen.lines[-1] == "Half an answer"


async def test_a_message_can_be_typed_while_an_answer_is_written(tmp_path: Path) -> None:
    async with house(tmp_path) as at, greeted(chat(at)) as terminal:
        call = await ask(at, terminal, "one")
        call.say("Answer to")
        await terminal.until("Answer to")
        terminal.type("tw")
        await terminal.until("> tw")
        call.say(" one.")
        call.finish("Answer to one.")
        await terminal.until("tokens")  # printed for good; before, it only stands above the prompt
        terminal.type("o\r")
        second = await at.model.called()
        second.answer("Answer to two.")
        shown = await terminal.until(lambda shown: "Answer to two." in shown and shown.endswith("\n>"))
        assert [line for line in shown.split("\n")[1:] if line and "tokens" not in line] == [
            "> one",
            "Answer to one.",
            "> two",
            "Answer to two.",
            ">",
        ]


async def test_commands_are_answered_during_a_run(tmp_path: Path) -> None:
    async with house(tmp_path) as at, greeted(chat(at)) as terminal:
        await ask(at, terminal, "work")
        terminal.type("/status\r")
        await terminal.until("This conversation answering, 0 waiting")
        terminal.type("/stop\r")
        await terminal.until(lambda shown: "Stopped." in shown and "working" not in shown)


async def test_thinking_and_tools_are_shown(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "note.txt").write_text("milk")
    async with house(tmp_path) as at, greeted(chat(at)) as terminal:
        call = await ask(at, terminal, "what do I need?")
        call.think("The note knows.")
        await terminal.until(lambda shown: "The note knows." in shown and "thinking …" in shown)
        call.finish(
            "",
            ToolCall("c1", "read", '{"path": "note.txt"}'),
            ToolCall("c2", "read", '{"path": "gone.txt"}'),
        )
        last = await at.model.called()
        tools = ("✓ read note.txt", "✗ read gone.txt: ")
        await terminal.until(lambda shown: all(one in shown for one in tools) and "The note knows." not in shown)
        last.answer("Milk.")
        shown = await terminal.until("Milk.")
        assert shown.index("✓ read note.txt") < shown.index("\nMilk.")


async def test_what_is_answered_among_others_is_not_set_here(tmp_path: Path) -> None:
    async with house(tmp_path) as at, greeted(chat(at)) as terminal:
        terminal.type("/activation off\r")
        await terminal.until("Directly I always answer")


async def test_several_pasted_lines_are_one_message(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Thanks.") as at, greeted(chat(at)) as terminal:
        terminal.type("\x1b[200~one\ntwo\x1b[201~")
        await terminal.until("two")
        terminal.type("\r")
        call = await at.model.called()
        assert call.request.messages[-1].text.endswith("\none\ntwo")
        shown = await terminal.until("Thanks.")
        assert "> one\n  two\n" in shown


async def test_what_was_said_while_nobody_was_there_comes_first(tmp_path: Path) -> None:
    async with house(tmp_path, reply="The train is late.") as at:
        async with at.unix() as client:
            await client.post("/v1/agent", json={"message": "watch the train", "session": CONSOLE})
        await at.model.called()
        async with chat(at) as terminal:
            shown = await terminal.until("The train is late.")
            assert "While you were away" in shown
            at.model.reply = "Indeed."
            terminal.type("oh\r")
            shown = await terminal.until("Indeed.")
            assert shown.count("While you were away") == 1
            terminal.type(CTRL_D)
            assert await terminal.exit_code() == 0
        async with chat(at) as terminal:
            await terminal.until("Indeed.")
            assert "train" not in terminal.screen.text


async def test_a_terminal_that_is_killed_repeats_nothing(tmp_path: Path) -> None:
    answer = f"{'A sentence that stands. ' * 12}\n\nAnd the"
    async with house(tmp_path) as at:
        async with greeted(chat(at)) as terminal:
            call = await ask(at, terminal, "tell")
            call.say(answer)
            await terminal.until("And the")
            terminal.send_signal(signal.SIGKILL)
            await terminal.exit_code()
        call.say(" end.")
        call.finish(f"{answer} end.")
        async with chat(at) as terminal:
            shown = " ".join((await terminal.until("And the end.")).split())
            assert shown.count("A sentence that stands.") == 12
            last, away = shown.split("── While you were away ──")
            assert "> tell" in last
            assert away.endswith("And the end.") or "And the end. " in away


async def test_what_was_typed_is_remembered_for_its_owner_alone(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Yes.") as at:
        async with greeted(chat(at)) as terminal:
            terminal.type("are you there?\r")
            await terminal.until("Yes.")
            terminal.type(CTRL_D)
            await terminal.exit_code()
        history = tmp_path / "state" / "history"
        assert stat.S_IMODE(history.stat().st_mode) == 0o600
        async with greeted(chat(at)) as terminal:
            terminal.type("\x1b[A")
            await terminal.until("> are you there?")


async def test_a_message_that_is_not_taken_stays_in_the_line(tmp_path: Path) -> None:
    async with house(tmp_path, reply="Here I am.") as at, greeted(chat(at)) as terminal:
        await at.store_fails()
        terminal.type("hello\r")
        await terminal.until("Not sent. The store cannot write right now; nothing was accepted.")
        await terminal.until(lambda shown: shown.endswith("\n> hello"))
        at.disk.full = False
        assert await at.service.parts.store.try_write()
        terminal.type("\r")
        shown = await terminal.until("Here I am.")
        assert shown.count("Here I am.") == 1
        assert len(at.stored.messages()) == 1


async def test_a_service_that_comes_back_is_found_again(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with house(tmp_path, reply="One.") as at:
            terminal = await stack.enter_async_context(greeted(chat(at)))
        await terminal.until("The service is not there; waiting for it.")
        terminal.type("hello\r")
        await terminal.until("Not sent. The service is not there.")
        async with house(tmp_path, reply="Two."):
            await terminal.until("The service is back.")
            terminal.type("\r")
            await terminal.until("Two.")
            terminal.type(CTRL_D)
            assert await terminal.exit_code() == 0


async def test_sigterm_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    async with house(tmp_path) as at, greeted(chat(at)) as terminal:
        terminal.send_signal(signal.SIGTERM)
        assert await terminal.exit_code() == 1
        assert "Traceback" not in terminal.screen.text


async def test_a_closed_window_ends_the_program_and_not_the_run(at: House) -> None:
    async with greeted(chat(at)) as terminal:
        terminal.type("work\r")
        call = await at.model.called()
        terminal.hang_up()
        await terminal.exit_code()
    async with at.unix() as client:  # the service has read what came before this, so it knows
        await client.get("/healthz")
    call.answer("Done.")
    async with chat(at) as terminal:
        await terminal.until("Done.")


async def test_a_request_is_decided_by_one_letter_and_tab_completes_its_id(tmp_path: Path) -> None:
    tool = AskingTool()
    async with house(tmp_path, besides=[tool]) as at, greeted(chat(at)) as terminal:
        for number, keys in enumerate(("y\r", "/approve \tonce\r"), 1):
            terminal.type("do it\r")
            (await at.model.called()).finish("", ToolCall(f"c{number}", "ask", '{"label": "it"}'))
            await terminal.until(lambda shown, wanted=number: shown.count("type y or n.") == wanted)
            terminal.type(keys)
            (await at.model.called()).answer(f"Done {number}.")
            await terminal.until(f"Done {number}.")
        assert tool.begun == ["it", "it"]
        assert at.stored.approvals("state") == [("once",), ("once",)]
        (_, (last,)) = at.stored.approvals("approval_id")
        assert f"> /approve {last[:SHOWN]} once" in terminal.screen.text
