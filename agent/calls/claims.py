"""Finds answers that claim an act: "I have saved the file", where no successful call did anything of the kind.

Patterns in several languages look for the first person or a passive with an act whose effect lies outside the answer:
something stored, sent, planned or deleted. Words about the answer itself ("I wrote you a summary below") are no such
act. Sentences that ask, plan, deny or set a condition claim nothing, and neither do quotations and code. It is better
to miss a lie than to question an honest answer, so whatever is unclear counts as honest.
"""

import re
from collections.abc import Collection
from enum import StrEnum


class Deed(StrEnum):
    """A kind of act that an answer can claim."""

    FILE = "file"  # something was stored, changed or deleted
    MESSAGE = "message"  # something was sent
    PLAN = "plan"  # something was planned for later
    RUN = "run"  # a program was run


# Which deeds the tools with these names can have done; None: nothing, they only look.
_TOOLS: dict[str, frozenset[Deed]] = {
    **dict.fromkeys(
        ("read", "glob", "grep", "stay_silent", "ask_person", "task_list", "web_fetch", "web_search"), frozenset()
    ),
    **dict.fromkeys(("write", "edit"), frozenset({Deed.FILE})),
    "message": frozenset({Deed.MESSAGE, Deed.FILE}),  # it deletes and edits messages as well
    "schedule": frozenset({Deed.PLAN, Deed.FILE}),
}

# Stands for calls that nothing is known of, which may have done anything.
ANY_TOOL = frozenset({""})
_FLAGS = re.IGNORECASE
# What an act is done to, where the verb alone may mean words in the answer.
_THING = (
    r"(?:\S+\.(?:md|txt|csv|json|ya?ml|py|pdf|html|log|docx?|xlsx?)\b|files?\b|folders?\b|director|notes?\b|memory"
    r"|calend[ae]r|reminders?\b|config|to-?do list|shopping list|datei|ordner|notiz|ged[äa]chtnis|kalender"
    r"|einkaufsliste|fichier|dossier|calendrier|agenda\b|archivos?\b|carpeta|calendario|cartella|appunti|lista"
    r"|файл|папк|заметк|календар|список|文件|日历|笔记|备忘)"
)
_ADVERB = r"(?:(?:also|just|now|successfully|already|then|have|has|it|them|both|finally|since)\s+){0,3}"
# "Saved searches are in the menu" is about searches.
_NOUN = r"\w+\s+(?:\w+\s+){1,3}(?:is|are|go|goes|apply|show|live|can)\b"
_I = rf"(?:\b(?:i|we)(?:['’]?ve|\s+have)?\s+{_ADVERB}|(?:^(?!{_NOUN})|\b(?:and|then|done[:,—–-]*)\s+){_ADVERB})"
_ICH = r"\bich\s+hab(?:e|['’]?s)?\b"
# How a sentence that only reports begins, and how it ends: "Message sent!", "Done: file saved as a.md."
_BARE = r"^(?:(?:done|erledigt|all set|all done|ok(?:ay)?|sure|great)[\s,:.!—–-]+)?(?:the|your|all|die|der|deine?)?\s*"
_SO = (
    r"\s*(?:[.!]?$|(?:to|for|as|in|under|at|unter|an|für|als)\s+(?!.*\b(?:is|are|was|were|will|ist|sind)\b)"
    r"\S+(?:\s\S+){0,2}$)"
)
# A bare "was stored" tells of the world as often as of an act of the model.
_BEEN = (
    r"(?:\b(?:has|have|['’]s)\s+(?:now\s+|just\s+|successfully\s+|already\s+|all\s+)?been\s+(?:successfully\s+)?"
    r"|\b(?:is|are)\s+(?:now\s+|all\s+)?|\bw(?:as|ere)\s+successfully\s+|\bwas\s+(?=saved\s+successfully))"
)

_PATTERNS: dict[Deed, tuple[re.Pattern[str], ...]] = {
    Deed.FILE: tuple(
        re.compile(pattern, _FLAGS)
        for pattern in (
            rf"{_I}(?:saved|stored|deleted|backed up|overwr(?:ote|itten))\b",
            rf"{_I}(?:written|wrote|created|made|updated|changed|edited|modified|added|appended|renamed|moved|deleted"
            rf"|removed|recorded|noted|erased|fixed|cleaned up|put)\b.{{0,80}}?{_THING}",
            rf"{_BEEN}(?:saved|stored|deleted|backed up|erased|overwritten)\b",
            rf"{_THING}.{{0,50}}?{_BEEN}(?:written|created|updated|changed|edited|added|renamed|moved|removed)\b",
            rf"{_ICH}.{{0,90}}\b(?:gespeichert|abgespeichert|gelöscht|abgelegt|gesichert|notiert|überschrieben)\b",
            rf"{_ICH}.{{0,60}}{_THING}.{{0,60}}\b(?:geschrieben|erstellt|angelegt|geändert|aktualisiert"
            r"|eingetragen|hinzugefügt|umbenannt|verschoben|entfernt|ergänzt)\b",
            r"\b(?:wurden?|ist|sind)\b.{0,60}\b(?:gespeichert|gelöscht|abgelegt)\b",
            r"\bhabe\s+ich\b.{0,60}\b(?:gespeichert|gelöscht|abgelegt|notiert)\b",
            r"\bj['’]ai\s+(?:bien\s+|aussi\s+|déjà\s+)?(?:enregistré|sauvegardé|supprimé|effacé)",
            rf"\bj['’]ai\s+(?:bien\s+)?(?:créé|écrit|modifié|ajouté|mis à jour|renommé|déplacé).{{0,60}}?{_THING}",
            r"\b(?:a|ont)\s+(?:bien\s+)?été\s+(?:enregistré|sauvegardé|supprimé|effacé)",
            r"\b(?:he|hemos)\s+(?:guardado|eliminado|borrado|almacenado)\b|\b(?:guardé|borré|eliminé)\b",
            rf"\b(?:he|hemos)\s+(?:creado|escrito|modificado|actualizado|añadido|movido|renombrado).{{0,60}}?{_THING}",
            r"\bha[n]?\s+sido\s+(?:guardad|eliminad|borrad)",
            r"\b(?:l[’']ho|ho|abbiamo|le ho|li ho|la ho)\s+(?:salvat|eliminat|cancellat|archiviat)",
            rf"\bho\s+(?:creato|scritto|modificato|aggiornato|aggiunto|spostato|rinominato).{{0,60}}?{_THING}",
            r"\b(?:è|sono)\s+stat[oaie]\s+(?:salvat|eliminat|cancellat)",
            r"(?:^|[\s,])я\s+(?:уже\s+|всё\s+|его\s+|её\s+)*(?:сохранил|удалил|стёр|стер)",
            rf"(?:^|[\s,])я\s+(?:создал|записал|изменил|обновил|добавил|переименовал|переместил)а?.{{0,60}}?{_THING}",
            r"\b(?:сохранён|сохранен|сохранена|удалён|удален|удалена|удалены|сохранены)\b",
            r"(?:我?已经?|我)[^，。]{0,14}(?:保存|存储|删除|存到|写入)|(?:保存|删除|存)(?:好|完)?了",
            rf"{_BARE}(?:files?|notes?|changes?|report|datei|notiz|änderungen)\s+(?:saved|deleted|updated|created|written"
            rf"|removed|renamed|moved|gespeichert|gelöscht|erstellt|geändert){_SO}",
            rf"{_BARE}(?:saved|deleted|gespeichert|gelöscht|guardado|borrado|enregistré|supprimé)[.!]?$",
            r"\((?:saved|noted|written)\s+(?:to|in|into)\s+(?:my\s+)?(?:memory|notes|file)",
        )
    ),
    Deed.MESSAGE: tuple(
        re.compile(pattern, _FLAGS)
        for pattern in (
            rf"{_I}(?:sent|e-?mailed|posted|forwarded|messaged|notified|texted|pinged|published)\b",
            rf"{_I}(?:let|told|informed)\b.{{1,40}}?\b(?:know\b|team|channel|everyone|#\w+)",
            rf"{_BEEN}(?:sent|posted|emailed|forwarded|notified|published|delivered to)\b",
            rf"{_ICH}.{{0,90}}\b(?:gesendet|geschickt|verschickt|gepostet|weitergeleitet|benachrichtigt"
            r"|abgeschickt)\b",
            r"\bhabe\s+ich\b.{0,60}\b(?:gesendet|geschickt|gepostet|weitergeleitet)\b",
            r"\b(?:wurden?|ist|sind)\b.{0,60}\b(?:gesendet|verschickt|abgeschickt|weitergeleitet)\b",
            r"\bj(?:e l)?['’](?:ai|ai bien)\s+(?:bien\s+|déjà\s+)?(?:envoyé|transmis|publié|posté|prévenu|notifié)",
            r"\b(?:a|ont)\s+(?:bien\s+)?été\s+(?:envoyé|transmis|publié)",
            r"\b(?:he|hemos)\s+(?:enviado|mandado|publicado|reenviado|avisado|notificado)\b|\b(?:envié|mandé"
            r"|publiqué)\b",
            r"\bha[n]?\s+sido\s+(?:enviad|publicad)",
            r"\b(?:l[’']ho|gliel[’']ho|ho|abbiamo)\s+(?:inviat|mandat|spedit|pubblicat|inoltrat|avvisat)",
            r"\b(?:è|sono)\s+stat[oaie]\s+(?:inviat|mandat|pubblicat)",
            r"(?:^|[\s,])я\s+(?:уже\s+|его\s+|её\s+|им\s+|ему\s+)*(?:отправил|послал|переслал|опубликовал|уведомил)",
            r"\b(?:отправлено|отправлен|отправлена|опубликовано)\b",
            r"(?:我?已经?|我)[^，。]{0,14}(?:发送|发给|发到|通知|转发|发布)|(?:发送|通知|转发)(?:好|完)?了",
            rf"{_BARE}(?:messages?|e-?mails?|mails?|posts?|invite|invitations?|reply|nachricht|einladung)\s+(?:sent|posted"
            rf"|delivered|forwarded|gesendet|verschickt|abgeschickt){_SO}",
            rf"{_BARE}(?:sent|posted|gesendet|verschickt|enviado|envoyé|inviato)[.!]?$",
        )
    ),
    Deed.PLAN: tuple(
        re.compile(pattern, _FLAGS)
        for pattern in (
            rf"{_I}(?:scheduled|booked)\b",
            rf"{_I}(?:set|created|added|made|cancell?ed|planned)\b.{{0,50}}?\b(?:reminders?|alarm|timer|job"
            r"|schedule|alert)\b",
            rf"\b(?:reminder|alarm|timer|job|meeting)\b.{{0,50}}?{_BEEN}(?:set|scheduled|created|planned|cancell?ed)\b",
            rf"{_BEEN}scheduled\b",
            rf"{_ICH}.{{0,90}}\b(?:eingeplant|geplant|terminiert|eingestellt|gestellt)\b",
            rf"{_ICH}.{{0,60}}\b(?:erinnerung|termin|wecker|timer)\b.{{0,60}}\b(?:erstellt|angelegt"
            r"|eingerichtet|gesetzt)\b",
            r"\b(?:erinnerung|termin|wecker)\b.{0,40}\b(?:wurde|ist)\b.{0,40}\b(?:eingerichtet|gestellt|gesetzt"
            r"|angelegt)\b",
            r"\bj['’]ai\s+(?:bien\s+)?(?:programmé|planifié)",
            r"\bj['’]ai\s+(?:bien\s+)?(?:créé|mis|ajouté|réglé).{0,30}\b(?:rappel|alarme|minuteur|réveil)",
            r"\b(?:he|hemos)\s+(?:programado|agendado|planificado)\b|\bprogramé\b",
            r"\b(?:he|hemos)\s+(?:creado|puesto|añadido|configurado).{0,30}\b(?:recordatorio|alarma)",
            r"\bho\s+(?:programmato|pianificato)\b",
            r"\bho\s+(?:impostato|creato|messo|aggiunto).{0,30}\b(?:promemoria|sveglia|timer)",
            r"(?:^|[\s,])я\s+(?:уже\s+)?(?:запланировал|назначил)",
            r"(?:^|[\s,])я\s+(?:уже\s+)?(?:поставил|установил|создал|добавил)а?.{0,30}(?:напоминани|будильник|таймер)",
            r"(?:напоминание|будильник)\s+(?:установлен|поставлен|создан)",
            r"(?:我?已经?|我)[^，。]{0,20}(?:设置|设定|安排|创建|设好)[^，。]{0,12}(?:提醒|闹钟|任务|日程)?",
            rf"{_BARE}(?:reminders?|alarm|timer|meeting|erinnerung|termin|wecker)\s+(?:set|scheduled|created|cancell?ed"
            rf"|gesetzt|gestellt|eingerichtet|angelegt){_SO}",
        )
    ),
    Deed.RUN: tuple(
        re.compile(pattern, _FLAGS)
        for pattern in (
            rf"\b(?:i|we)(?:['’]?ve|\s+have)?\s+{_ADVERB}(?:executed\b|restarted\b|ran\s+(?:\w+\s+){{0,3}}(?:tests?"
            r"|scripts?|commands?|builds?|migrations?|suite|backups?)\b|rebooted\b|installed\b|deployed\b|pushed\s+(?:the|your|it|to)\b|committed\s+(?:the|your|it)\b)",
            rf"{_ICH}.{{0,60}}\b(?:ausgeführt|neu gestartet|neugestartet|installiert)\b",
        )
    ),
}

# Sentences with one of these claim nothing: they plan, deny, wonder, set a condition, or are about others.
_OPEN = re.compile(
    r"\b(?:will|would|could|can|cannot|can['’]?t|should|shall|may|might|must|not|never|nothing|none|nobody"
    r"|unable|fail(?:ed)?|if|once|when"
    r"|unless|until|before|after|whether|how|let me|going to|about to|want|tell me|assum\w*|imagine|suppose|example"
    r"|you(?:['’]ve)?\s+(?:have\s+)?(?:already\s+)?(?:sent|saved|deleted|scheduled|posted|created)|no longer"
    r"|without|tried"
    r"|nichts?|kein\w*|nie|niemand\w*|wenn|falls|sobald|ob|werde|würde\w*|kann|könnte\w*|soll\w*|konnte\w*"
    r"|ne|pas|jamais|si|quand|vais|pourrais?|peux|voulez|dès|faut"
    r"|no|nunca|cuando|voy|puedo|podría|quieres|antes"
    r"|non|mai|se|quando|vuoi|posso|potrei|prima"
    r"|не|если|когда|могу|буду|бы|нельзя|хотите|чтобы)\b|(?:n['’]t|['’]ll|['’]d)\b|\bn['’]"
    r"|没|不|未|如果|要是|会(?!议)|可以|想|将|吗|能|您已|你已",
    _FLAGS,
)
# Words about an earlier time: what they tell of may have been done by an earlier turn.
_EARLIER = re.compile(
    r"\b(?:yesterday|earlier|previously|already|last\s+(?:week|month|night|time|\w+day)|this morning|ago"
    r"|back then|on \w+day|in (?:january|february"
    r"|march|april|may|june|july|august|september|october|november|december)"
    r"|gestern|vorhin|bereits|schon|früher|letzte\w*|vor \w+ (?:tagen|stunden|minuten)|heute morgen"
    r"|hier|déjà|tout à l['’]heure|la semaine dernière|ce matin"
    r"|ayer|ya|antes|la semana pasada|esta mañana"
    r"|ieri|già|prima|la settimana scorsa|stamattina"
    r"|вчера|уже|ранее|раньше|прошл\w+|утром)\b|昨天|之前|上周|刚才|早上|早些",
    _FLAGS,
)
_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[^\S\n]*+>.*$|\"[^\"\n]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|‘[^’\n]{0,600}’(?!\w)"
    r"|(?<!\w)'[^'\n]*'(?!\w)",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE = re.compile(r"[^.!?。！？;；\n]*(?:[.!?](?!\s|\Z)[^.!?。！？;；\n]*)*[.!?。！？;；\n]?")


# Every claim has one of these, or a letter of a script after Greek; looking for them is fast, and patterns are not.
_STEM_WORDS = (
    "sav stor delet backed overwr writ wrot creat made updat chang edit modif added append renam moved remov"
    " record noted eras fixed clean put sent mail post forward messag notif texted ping publish let told inform"
    " schedul book set cancel plan deliver gespeich gelösch abgelegt gesichert notiert überschr geschr erstellt"
    " angelegt geänd aktualis eingetr hinzug umben verschob entfernt ergänzt gesend geschick verschick weitergel"
    " benachr abgeschick terminiert eingest gestellt eingericht gesetzt enregistr sauvegard supprim effac créé"
    " écrit ajout jour déplac envoy transmis publi prévenu programm planif mis réglé guard elimin borr almacen"
    " cread escrit actualiz añad movid envi mand avis programé programad agend puesto configur salvat archiv"
    " scritto aggiorn aggiunt spostat rinomin inviat spedit inoltr avvis pianific messo execut restart reboot"
    " ran install deploy push commit ausgef neu"
)
_STEMS = tuple(_STEM_WORDS.split())
# Characters of a sentence, and at each end of an answer, that are looked at: more would take long.
_SENTENCE_MOST, _END = 400, 3000


def deeds(tools: Collection[str]) -> frozenset[Deed]:
    """Return what successful calls of these tools can have done. A tool that is not known here can do anything."""
    return frozenset[Deed]().union(*(_TOOLS.get(name, frozenset(Deed)) for name in tools))


def unfounded(text: str, now: Collection[str], before: Collection[str] = ()) -> bool:
    """Whether an answer claims a deed that no successful call did.

    text: of the answer. now: names of the tools with successful calls in this turn; before: those in earlier turns,
    which found a sentence only if it tells of an earlier time.
    """
    low = text.lower()
    if low.isascii() and not [stem for stem in _STEMS if stem in low]:
        return False
    done = deeds(now)
    if len(done) == len(Deed):
        return False
    known = done | deeds(before)
    if len(text) > 2 * _END:
        text = f"{text[:_END]}\n{text[-_END:]}"
    for found in _SENTENCE.finditer(_unquoted(text)):
        low = found[0].lower()
        if len(low) > _SENTENCE_MOST or (max(low, default="") < "\u0400" and not any(stem in low for stem in _STEMS)):
            continue
        sentence = found[0].strip(" \t*_-•#✅✔️👍")
        if not sentence or sentence.endswith(("?", "？", ":")) or _OPEN.search(sentence):
            continue
        true = known if _EARLIER.search(sentence) else done
        if any(pattern.search(sentence) for deed in Deed if deed not in true for pattern in _PATTERNS[deed]):
            return True
    return False


def _unquoted(text: str) -> str:
    """Return the text without code and quotations, but with file names, of which each stands for itself."""
    end = max(text.rfind("“"), text.rfind("”")) + 1  # behind it „ begins nothing, and looking for its end takes long
    return _QUOTED.sub(
        lambda found: found[0] if re.fullmatch(r"[`\"][\w./-]+\.\w{1,5}[`\"]", found[0]) else " it ",
        text[:end] + text[end:].replace("„", "‚"),
    )
