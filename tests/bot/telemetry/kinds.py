"""One key of each kind that is known by its look; none of them is real."""

_A = "AbC3dEf6Gh1jKlMnOpQrStUvWxYz0123456789"
_LINE = "QUJDRA" * 10 + "QUJD"

# One that is known by its name alone, which stays.
NAMED = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

KINDS = {
    "GitHub": f"ghp_{_A[:36]}",
    "GitHub, fine-grained": f"github_pat_11AAAAAAA0{_A}",
    "Slack bot": f"xoxb-123456789012-1234567890123-{_A[:24]}",
    "Slack app": "xapp-1-A0123-456-" + "ab12" * 8,
    "AWS id": "AKIAQ3EGUJLP2ZTX5N7A",
    "OpenAI": f"sk-proj-{_A}_-{_A}",
    "OpenAI, old": f"sk-{_A}{_A[:10]}",
    "Anthropic": f"sk-ant-api03-{_A}{_A}-_AA",
    "Google": f"AIzaSy{_A[:33]}",
    "Google OAuth": f"ya29.a0{_A}",
    "Stripe": f"sk_live_{_A[:24]}",
    "Stripe webhook": f"whsec_{_A[:32]}",
    "JWT": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.{_A}_",
    "Telegram": ":AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1",
    "PEM": "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *[_LINE] * 6, "-----END RSA PRIVATE KEY-----"]),
    "PEM, whole": "\n".join(["-----BEGIN PRIVATE KEY-----", *[_LINE] * 3, "-----END PRIVATE KEY-----"]),
}
