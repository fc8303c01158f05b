"""Memories and questions that write the same thing in different ways, with many that are nearly the same beside each.

Each kind stands for a rule of how words are cut, so these are examples of the rules and no measure of recall.
"""

from random import Random

# How it is written down, what is asked, and what makes another memory of it in which the answer does not stand.
Way = tuple[str, str, tuple[str, str]]

WAYS: dict[str, tuple[Way, ...]] = {
    "numbers": (
        ("Budget for the roof: 64,177 EUR", "what was it that cost 64177?", ("64,177", "{},{}")),
        ("Das Dach hat 39.598 Euro gekostet", "was kostete 39598 Euro?", ("39.598", "{}.{}")),
        ("Крыша стоила 52115 рублей", "что стоило 52 115 рублей?", ("52115", "{}{}")),
        ("upgraded vault to v2.11.3", "what has version 2.11.3?", ("2.11.3", "{}.{}.7")),
    ),
    "telephones": (
        ("Phone: Megan +49 30-245-6112", "who called from +49302456112?", ("245-6112", "{}-{}")),
        ("Anke ist unter +7 495 9883834 erreichbar", "wem gehört 495 988 3834?", ("9883834", "{}{}")),
        ("王强的电话号码是+81 3-757-3082", "+8137573082是谁的号码？", ("757-3082", "{}-{}")),
    ),
    "days": (
        ("2024-12-02: flight to Leeds", "where did I fly on 2 December 2024?", ("12-02", "11-{day}")),
        ("Zahnarzt am 04.03.2026", "Zahnarzt am 4. März?", ("04.03", "{day}.05")),
        ("9月22日去看牙医", "牙医 2026-09-22", ("9月22日", "8月{day}日")),
        ("cita con el dentista: 2025-08-14", "dentista el 14 de agosto", ("08-14", "06-{day}")),
        ("день рождения Анны 11.10.1987", "чей день рождения 11 октября?", ("11.10", "{day}.07")),
    ),
    "names": (
        ("`maxRetryCount` must stay below 7", "what about max retry count?", ("Count", "Budget{}")),
        ("session_upload_limit is 20", "sessionUploadLimit", ("limit", "order{}")),
        ("token-expiry-window is 5 minutes", "TOKEN_EXPIRY_WINDOW?", ("window", "policy{}")),
        ("the e-mail relay is broken", "email?", ("e-mail", "fax{}")),
        ("seat 12A on LH1234", "lh 1234 seat", ("LH1234", "LH{}")),
        ("logs: /opt/postgres/edge4/main.conf", "edge4 main.conf", ("edge4", "edge{}")),
    ),
    "signs": (("🚗 level 3, Karlsplatz", "🚗?", ("🚗", "🚲{}")),),
    "letters": (
        ("Geburtstag von Anke Köhler im Mai", "Koehler?", ("Köhler", "Vogel{}")),
        ("Straßburger mag Käse", "was mag strassburger?", ("Straßburger", "Lindemann{}")),
        ("el teléfono de Núñez está roto", "telefono nunez", ("Núñez", "Beltran{}")),
        ("Фёдор живёт в Самаре", "где живет федор", ("Фёдор", "Игорь{}")),
    ),
    "endings": (
        ("Петру нравится вишня", "что любит Пётр, вишню?", ("Петру", "Глебу{}")),
        ("Ольга пьёт чай", "чай для Ольги", ("Ольга", "Клара{}")),
        ("no nuts for Grace", "can Grace eat a nut?", ("Grace", "Walter{}")),
        ("Keine Pilze für Björn", "verträgt Björn einen Pilz?", ("Björn", "Heike{}")),
        ("Robert runs before work", "is Robert running?", ("Robert", "Simon{}")),
        ("田中さんは大阪に住む", "田中さんはどこに住んでいますか", ("田中", "山本{}")),
    ),
}


def memory(seed: int, beside: int) -> tuple[str, dict[str, list[tuple[str, str]]]]:
    """The text of a memory, and by kind the questions with their answers. beside: what is nearly the same as each."""
    random = Random(seed)
    lines = []
    asked: dict[str, list[tuple[str, str]]] = {}
    for kind, ways in WAYS.items():
        for written, question, (part, other) in ways:
            asked.setdefault(kind, []).append((question, written))
            lines.append(written)
            for _ in range(beside):
                first, second, day = random.randint(1, 99), random.randint(100, 999), random.randint(15, 28)
                if "{}{}" in other or "{}-{}" in other:
                    first, second = random.randint(100, 999), random.randint(1000, 9999)
                lines.append(written.replace(part, other.format(first, second, day=day)))
    random.shuffle(lines)
    return "".join(f"- {line}\n" for line in lines), asked
