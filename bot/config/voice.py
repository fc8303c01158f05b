"""The sections `transcription` and `speech`: who writes down what people say, and who says answers aloud."""

from pydantic import model_validator

from channels.section import Secret, Section, Url, conflict, setting


class Transcription(Section):
    """What writes down voice messages."""

    base_url: Url | None = setting(None, "An OpenAI-compatible endpoint, such as https://api.openai.com/v1.")
    api_key: Secret = setting(None, "Its key.")
    model: str = setting("whisper-1", "Its model.", min_length=1)
    command: tuple[str, ...] = setting(
        (), "Instead of it a program and its arguments; {file} stands for the recording. It prints what was said."
    )

    @model_validator(mode="after")
    def _one_way(self) -> "Transcription":
        if self.command and self.base_url is not None:
            raise conflict("base_url or command, not both", ("command",))
        if self.command and ("{file}" in self.command[0] or not any("{file}" in part for part in self.command)):
            raise conflict(
                'a program and its arguments, one of them with {file}, such as ["stt", "{file}"]', ("command",)
            )
        return self


class Speech(Section):
    """What says answers aloud where `/voice on` asks for it."""

    base_url: Url | None = setting(None, "An OpenAI-compatible endpoint, such as https://api.openai.com/v1.")
    api_key: Secret = setting(None, "Its key.")
    model: str = setting("tts-1", "Its model.", min_length=1)
    voice: str = setting("alloy", "The voice that speaks.", min_length=1)
