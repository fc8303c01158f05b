"""A corpus of memories with questions about them, made the same way each time.

Each language has facts about people and things. A question names the person and the thing in other words and endings
than the fact does; the same person has other things, and the same thing other people, so that every fact but one is a
distractor that holds half of the words. Notes stand between them: more about each person and each thing than a search
shows, so that neither is enough, and many with the other words of the questions, so that frequent words are not.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from random import Random


@dataclass(frozen=True)
class Language:
    """People, things as facts and as questions name them, facts, questions, and notes without a question."""

    people: str
    # "word in facts/word in questions".
    things: str
    facts: tuple[str, ...]
    questions: tuple[str, ...]
    notes: tuple[str, ...]


LANGUAGES = {
    "en": Language(
        "Anna Boris Chidi Dorothea Emeka Farida Gustav Hilde Igor Jolanda Kwame Lucia Mateusz Nkechi Oskar",
        "bicycle/bicycles boiler/boilers passport/passports violin/violins contract/contracts keys/key tent/tents"
        " painting/paintings invoice/invoices camera/cameras suitcase/suitcases laptop/laptops",
        ("{who} keeps the {what} in {where}.", "The {what} of {who} was taken to {where} after the holidays."),
        ("Where can I find the {what} that belongs to {who}?", "hey, do you remember where {who} left any {what}?"),
        (
            "It rained the whole day and nobody wanted to go out.",
            "We had soup for dinner and talked until late.",
            "Nobody can find what belongs here.",
            "Do you remember what is left?",
        ),
    ),
    "de": Language(
        "Annegret Bertram Clemens Dagmar Eberhard Frieda Gisela Heinrich Ingrid Joachim Katrin Lothar Mechthild",
        "Fahrrad/Fahrrads Vertrag/Vertrages Zelt/Zeltes Rechnung/Rechnungen Kamera/Kameras Koffer/Koffers"
        " Schrank/Schrankes Geige/Geigen Reisepass/Reisepasses Werkzeug/Werkzeuge Leiter/Leitern",
        ("{who} bewahrt {what} in {where} auf.", "{what} von {who} steht seit dem Umzug in {where}."),
        ("Wo finde ich das von {who}, es geht um {what}?", "Weißt du noch, wohin {who} wegen des {what} gefahren ist?"),
        (
            "Heute hat es den ganzen Tag geregnet.",
            "Zum Abendessen gab es Suppe, danach wurde lange geredet.",
            "Wo finde ich das?",
            "Weißt du noch, wohin?",
        ),
    ),
    "fr": Language(
        "Amélie Benoît Céline Damien Élodie Fabrice Geneviève Hervé Inès Jérôme Karine Léopold Maëlle",
        "vélo/vélos contrat/contrats valise/valises facture/factures tableau/tableaux passeport/passeports"
        " armoire/armoires échelle/échelles violon/violons chaudière/chaudières",
        ("{who} garde {what} à {where}.", "On a porté {what} de {who} à {where} après les vacances."),
        ("Où sont les {what} de {who} ?", "tu sais où {who} a mis ses {what} ?"),
        (
            "Il a plu toute la journée.",
            "On a mangé de la soupe et parlé longtemps.",
            "Où sont-ils ?",
            "tu sais où ?",
        ),
    ),
    "ru": Language(
        "Анна Борис Галина Дмитрий Екатерина Жанна Зинаида Игорь Кирилл Людмила Михаил Наталья",
        "велосипед/велосипеда договор/договора чемодан/чемодана паспорт/паспорта картина/картины"
        " палатка/палатки скрипка/скрипки котёл/котёл камера/камеры лестница/лестницы",
        ("{who} хранит {what}, место: {where}.", "{what}, владелец {who}, теперь в {where}."),
        ("Где находится {what}, хозяин {who}?", "напомни, куда {who} убрал своего {what}?"),
        (
            "Весь день шёл дождь.",
            "На ужин был суп, говорили допоздна.",
            "Где находится это?",
            "напомни, куда?",
        ),
    ),
    "zh": Language(
        "王小明 李晓红 张建国 刘美丽 陈志强 杨丽娟 赵国庆 黄秀英 周文博 吴思远 徐海燕 孙玉兰",
        "自行车/自行车 热水器/热水器 护照/护照 小提琴/小提琴 合同/合同 钥匙/钥匙 帐篷/帐篷 油画/油画 发票/发票"
        " 照相机/照相机 行李箱/行李箱 笔记本电脑/笔记本电脑",
        ("{who}把{what}放在{where}了。", "{who}的{what}搬家以后一直在{where}。"),
        ("请问{who}的{what}现在放哪儿?", "你还记得{who}把{what}收到哪里去了吗?"),
        (
            "今天下了一整天的雨,谁也没出门。",
            "晚饭喝了汤,大家聊到很晚。",
            "请问放哪儿?",
            "你还记得吗?",
        ),
    ),
    "ja": Language(
        "田中太郎 鈴木花子 佐藤健一 高橋美咲 渡辺大輔 伊藤陽子 山本翔太 中村由美 小林直樹 加藤恵子",
        "自転車/自転車 給湯器/給湯器 旅券/旅券 契約書/契約書 鍵/鍵 絵画/絵画 請求書/請求書 カメラ/カメラ"
        " スーツケース/スーツケース ノートパソコン/ノートパソコン",
        ("{who}は{what}を{where}に置いた。", "{who}さんの{what}は引っ越しの後ずっと{where}にある。"),
        ("{who}さんの{what}はどこにありますか?", "{who}が{what}を覚えていますか?"),
        (
            "一日中雨が降っていた。",
            "夕食はスープで、遅くまで話した。",
            "どこにありますか?",
            "どこへ片付けたか覚えていますか?",
        ),
    ),
    "ko": Language(
        "김민수 이영희 박지훈 최수진 정우성 강하늘 조은비 윤서연 장동민 임채원",
        "자전거/자전거 보일러/보일러 여권/여권 계약서/계약서 열쇠/열쇠 그림/그림 영수증/영수증 카메라/카메라",
        ("{who}는 {what}를 {where}에 두었다.", "{who}의 {what}는 이사 후 {where}에 있다."),
        ("{who}의 {what} 어디에 있어?", "{who}가 {what}을 기억나?"),
        (
            "하루 종일 비가 왔다.",
            "저녁에 국을 먹고 늦게까지 이야기했다.",
            "어디에 있어?",
            "어디로 옮겼는지 기억나?",
        ),
    ),
}


@dataclass(frozen=True)
class Question:
    """A question and the one line that answers it."""

    language: str
    text: str
    answer: str


def corpus(seed: int, questions: int, entries: int = 0) -> tuple[dict[str, str], list[Question]]:
    """The files of a memory by their paths, and questions about it. entries: with further notes up to so many."""
    random = Random(seed)
    found: list[Question] = []
    lines = []
    for name, language in LANGUAGES.items():
        for who, thing in itertools.product(language.people.split(), language.things.split()):
            what, asked = thing.split("/")
            where = f"{random.choice('ABCDEFGH')}{random.randrange(100, 1000)}"
            fact = random.choice(language.facts).format(who=who, what=what, where=where)
            question = random.choice(language.questions).format(who=who, what=asked)
            lines.append(fact)
            found.append(Question(name, question, fact))
        lines += [f"{random.choice(language.notes)} ({n})" for n in range(400)]
        about = (*language.people.split(), *(thing.split("/")[0] for thing in language.things.split()))
        lines += [f"{one}: {random.choice(language.notes[:2])} ({n})" for one in about for n in range(20)]
    lines += itertools.islice(_others(random), max(0, entries - len(lines)))
    random.shuffle(lines)
    days = (date(2020, 1, 1) + timedelta(days=n) for n in itertools.count())
    files = {
        f"memory/{next(days)}.md": "# Notes\n\n" + "".join(f"- {line}\n" for line in lines[at : at + 200])
        for at in range(0, len(lines), 200)
    }
    return files, random.sample(found, questions)


def _others(random: Random) -> Iterator[str]:
    """Lines of made-up words, of which a few are frequent and most are rare, with one word of the facts and a note."""
    made = ["".join(random.choices("abcdefghijklmnoprstuvwz", k=random.randint(3, 10))) for _ in range(20_000)]
    weights = list(itertools.accumulate(1 / (n + 10) for n in range(len(made))))
    frequent = [LANGUAGES[name] for name in ("en", "zh")]
    of_facts = [word for one in frequent for word in (*one.people.split(), *one.things.replace("/", " ").split())]
    notes = [note for language in LANGUAGES.values() for note in language.notes]
    while True:
        some = random.choices(made, cum_weights=weights, k=10)
        yield " ".join((*some, random.choice(of_facts), random.choice(notes)))
