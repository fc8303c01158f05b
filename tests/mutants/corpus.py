"""Faults in what is kept when long conversations are summed up again and again."""

from tests.mutants import Fault

_CORPUS = "tests/bot/runs/test_compaction_corpus.py::test_every_request_is_whole"

FAULTS = (
    Fault(
        "corpus/identifiers-of-quotes-that-fell-out-are-lost",
        "compose",
        "for part in (2, 0, 1)",
        "for part in (2,)",
        (_CORPUS,),
    ),
    Fault(
        "corpus/earlier-rules-are-lost",
        "compose",
        "[*_lines(before, 1), *_said(covered)]",
        "[*_said(covered)]",
        (_CORPUS,),
    ),
    Fault(
        "corpus/the-beginning-moves-by-itself",
        "ContextEngine.assemble",
        "if self.tokens > limit:",
        "if self._context.fit(self._room(self._spec.route.model, limit) // 2) or self.tokens > limit:",
        (_CORPUS,),
    ),
)
