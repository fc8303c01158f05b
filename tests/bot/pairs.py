"""Pairs of sentences that differ in one word, digit, sign or emoji that matters: each says something of its own.

Not collected by pytest.
"""

from collections.abc import Iterator

# A sentence with a place, and what may stand there: any two of a line are a pair.
_SENTENCES = (
    (
        "The database of the shop is {} since half past two, and all orders that came in wait.",
        "up down slow back dead safe",
    ),
    (
        "{} The night run of the shop has ended; the report lies where it always lies, in the usual folder.",
        "🔴 🟢 🟡 ⚠️ ✅",
    ),
    (
        "The nightly build of the {} branch is ready to be tested by everybody in the second floor.",
        "alpha beta main gamma",
    ),
    (
        "I have sent the invoice for the repair of the roof to {} a moment ago, as you had asked.",
        "Anna Peter Maria Anne",
    ),
    (
        "There are {} people on the list for the trip to the sea next Sunday; the bus leaves early.",
        "ten two no 10 twelve",
    ),
    (
        "The copy of the photographs to the second disk {} a minute ago; the log says no more than this.",
        "succeeded failed",
    ),
    (
        "The import of the old customers from last year's list {}; I will look at the figures later on.",
        "has_started has_failed",
    ),
    (
        "The balance of the account for the garden is {} euros this morning, before the bank has opened.",
        "+50 -50 50 5.0 5,0",
    ),
    ("Your train to Ulm leaves at 14:{} from the platform behind the big clock, so do not hurry.", "05 50 35"),
    (
        "The value of the sensor in the cellar is {} percent, which it has been since this morning.",
        "<90 >90 ≤90 =90 ~90 90",
    ),
    ("The server answers to our calls again{} and the shop is open for everybody who waits for it", ". ! ? …"),
    (
        "The change that Ben proposed for the login page has been {} by the others in the afternoon.",
        "merged rejected ✅ ❌",
    ),
    ("{} tells me that the flight to Lisbon is late by an hour, and that the gate is the same.", "👩 👨 👩🏽 👩‍👧"),
    (
        "The variable for the limit is called `{}` in the file that is read when the service starts up.",
        "a_b ab a*b a-b",
    ),
    (
        "Die Heizung im Keller ist seit heute früh {}, und im ganzen Haus merkt man das schon sehr deutlich.",
        "an aus kaputt heil wieder_an",
    ),
    ("Der Termin beim Arzt ist am {} um neun Uhr, bitte die Karte der Kasse nicht vergessen.", "Montag Dienstag 3. 4."),
    (
        "Ich habe {} im Garten gesehen, und das Tor zur Straße stand dabei die ganze Zeit weit offen.",
        "Sie sie niemanden",
    ),
    (
        "Le serveur de la boutique est {} depuis ce matin, et toutes les commandes attendent encore.",
        "en_panne en_marche lent",
    ),
    (
        "La réunion avec les voisins aura lieu {} dans la grande salle, comme la dernière fois.",
        "lundi mardi demain jeudi",
    ),
    (
        "La copia de los archivos del año pasado {} hace un momento, según dice el registro del sistema.",
        "terminó falló empezó no_empezó",
    ),
    ("El precio del billete para el concierto {} esta semana, y quedan muy pocos sitios libres.", "subió bajó cambió"),
    (
        "Il negozio vicino alla stazione è {} anche questo sabato, come dice il cartello sulla porta.",
        "aperto chiuso pieno mezzo_pieno",
    ),
    (
        "A porta da garagem está {} desde ontem à noite, e a luz de dentro também não se apagou.",
        "aberta fechada partida",
    ),
    (
        "Paczka z książkami dla biblioteki została {} dziś rano przez kuriera, który był tu wczoraj.",
        "odebrana zwrócona zgubiona",
    ),
    (
        "Сервер магазина {} сегодня утром, и все заказы, которые пришли ночью, ждут ответа.",
        "упал поднялся завис работает",
    ),
    ("Встреча с соседями перенесена на {}, место осталось прежним, как и список вопросов.", "среду пятницу завтра"),
    ("Ο διακομιστής του καταστήματος είναι {} από το πρωί, και όλες οι παραγγελίες περιμένουν.", "εντός εκτός αργός"),
    ("الخادم الخاص بالمتجر {} منذ الصباح، وجميع الطلبات التي وصلت في الليل ما زالت تنتظر الرد.", "يعمل متوقف بطيء"),
    ("השרת של החנות {} מאז הבוקר, וכל ההזמנות שהגיעו בלילה עדיין מחכות לתשובה שלנו.", "פועל נפל איטי"),
    ("दुकान का सर्वर आज सुबह से {} है, और रात में आए सभी ऑर्डर अब तक जवाब का इंतज़ार कर रहे हैं।", "चालू बंद धीमा"),
    ("商店的服务器从今天早上开始{}，昨晚收到的所有订单都还在等待我们的回复，请稍后再看。", "正常 停机 很慢 恢复"),
    (
        "会議は来週の{}に変わりました。場所はいつもの部屋で、資料は前の日までに送ってください。",
        "月曜日 火曜日 水曜日 木曜日",
    ),
    (
        "가게 서버가 오늘 아침부터 {} 있으며, 밤에 들어온 주문은 모두 아직 답을 기다리고 있습니다.",
        "켜져 꺼져 멈춰 안_켜져",
    ),
    (
        "Dükkânın sunucusu bu sabahtan beri {}, gece gelen bütün siparişler hâlâ cevap bekliyor.",
        "açık kapalı yavaş açık_değil",
    ),
    ("เซิร์ฟเวอร์ของร้าน{}ตั้งแต่เช้านี้ และคำสั่งซื้อทั้งหมดที่เข้ามาเมื่อคืนยังรอคำตอบอยู่", "ทำงาน หยุด ช้า"),
    ("Máy chủ của cửa hàng đã {} từ sáng nay, và mọi đơn hàng đến trong đêm vẫn đang chờ trả lời.", "chạy dừng chậm"),
)


def pairs() -> Iterator[tuple[str, str]]:
    """Each pair in both orders."""
    for sentence, words in _SENTENCES:
        said = [sentence.format(word.replace("_", " ") if "`" not in sentence else word) for word in words.split()]
        yield from ((one, other) for one in said for other in said if one is not other)
