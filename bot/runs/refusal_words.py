"""What people are told of the parts of requests that models refuse, see `agent/models/refusals.py`."""

from collections.abc import Sequence


def left_out(model: str, parts: Sequence[str]) -> str:
    """What people are told of parts that a model has refused; empty where all are sent in another form."""
    names = parts_left_out(parts)
    together = " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
    return f"(I left out {together}, because `{model}` refused it.)" if names else ""


def parts_left_out(parts: Sequence[str]) -> Sequence[str]:
    """Return what refused parts are in words, see `agent/models/refusals.py`; nothing for what is sent otherwise."""
    words = [part.split(" ") for part in parts]
    pictures = sum(kind == "image" for kind, *_ in words)
    found = [f"{pictures} pictures" if pictures > 1 else "a picture"] if pictures else []
    found += [f"all pictures but the newest {most}" if most != "0" else "all pictures" for most in _of("images", words)]
    found += ["my earlier reasoning"] if any(kind == "thinking" for kind, *_ in words) else []
    found += [f"the tool `{name}`" for name in _of("tool", words)]
    return found + [f"all tools but the first {most}" if most != "0" else "all tools" for most in _of("tools", words)]


def parts_simpler(parts: Sequence[str]) -> Sequence[str]:
    """Return in words which refused parts are sent in a plainer form."""
    found = [part.split(" ") for part in parts]
    return [f"the details of the parameters of `{name}`" for name in _of("schema", found)]


def _of(kind: str, words: Sequence[Sequence[str]]) -> Sequence[str]:
    return [one[1] for one in words if one[0] == kind]
