"""What people write into a room while one of them is answered, and the mode that is chosen by a button."""

from pathlib import Path

from tests.standins.script import Hang
from tests.wire.stage import staged


async def test_two_people_are_answered_together_and_one_of_them_chooses_otherwise(tmp_path: Path) -> None:
    async with staged("telegram", tmp_path, queue={"mode": "collect"}) as stage:
        side, room = stage.side, stage.side.room
        async with stage.serving():
            hang = Hang()
            stage.model.add(hang, "first")
            side.say("one", "alice", room, mention=True)
            await hang.entered()
            side.say("two", "bob", room, mention=True)
            side.say("three", "alice", room, mention=True)
            side.say("elsewhere", "bob")
            await stage.passing(lambda: side.posts(who="bob") == ["re: elsewhere"], "an answer to Bob alone")
            await stage.until(lambda: len(stage.stored.texts()) == 4, "what is written meanwhile")
            hang.release()
            await stage.passing(lambda: side.posts(room) == ["first", "re: three"], "one answer for both")
            said = [message.text for message in stage.model.requests[-1].messages[-2:]]
            assert [f"(id {one})" in text for one, text in zip((side.bob, side.alice), said, strict=True)] == [True] * 2
            side.command("/queue")
            await stage.passing(lambda: "/queue steer" in "".join(side.posts()), "the modes")
            side.click(0)
            await stage.passing(lambda: "chosen here" in side.posts()[-1], "the choice")
            assert stage.stored.sessions("settings", session_key=f"agent:main:telegram:direct:{side.alice}") != []
