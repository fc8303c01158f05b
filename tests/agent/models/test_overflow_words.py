"""How each vendor says that a request is too long for the model's window, and what only sounds like it."""

from typing import Any

import pytest

from agent.errors import ErrorKind
from agent.models.failures import of_payload

K = ErrorKind
OPENAI = "invalid_request_error"


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


OVERFLOWS: dict[str, tuple[int | None, Any]] = {
    "anthropic": (400, {"type": "error", "error": {
        "type": OPENAI, "message": "prompt is too long: 214083 tokens > 200000 maximum"}}),
    "anthropic input and output": (400, {"type": "error", "error": {
        "type": OPENAI,
        "message": "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length "
                   "or `max_tokens` and try again"}}),
    "anthropic bytes": (413, {"type": "error", "error": {
        "type": "request_too_large", "message": "Request exceeds the maximum size"}}),
    "openai": (400, error(
        "This model's maximum context length is 128000 tokens. However, your messages resulted in "
        "130210 tokens. Please "
        "reduce the length of the messages.", type=OPENAI, param="messages", code="context_length_exceeded")),
    "openai input": (400, error(
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300012 tokens. Please "
        "reduce the length of the messages.", type=OPENAI, param="messages", code="context_length_exceeded")),
    "openai responses": (400, error(
        "Your input exceeds the context window of this model. Please adjust your input and try again.", type=OPENAI,
        param="input", code="context_length_exceeded")),
    "openai responses stream": (None, {"code": "context_length_exceeded", "message":
        "Your input exceeds the context window of this model. Please adjust your input and try again."}),
    "openai one text": (400, error(
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, but got a "
        "string with length 12582912 instead.", type=OPENAI, param="messages[1].content",
        code="string_above_max_length")),
    "gemini": (400, [error(
        "The input token count (1048580) exceeds the maximum number of tokens allowed (1048575).", code=400,
        status="INVALID_ARGUMENT")]),
    "gemini older": (400, error(
        "The input token count exceeds the maximum number of tokens allowed 1048576.", code=400,
        status="INVALID_ARGUMENT")),
    "vertex": (400, error(
        "Unable to submit request because the input token count is 1100000 but model only supports "
        "up to 1048576. Reduce "
        "the input token count and try again.", code=400, status="INVALID_ARGUMENT")),
    "deepseek": (400, error(
        "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (131808 in the "
        "messages, 8192 in the completion). Please reduce the length of the messages or completion.", type=OPENAI,
        param=None, code=OPENAI)),
    "mistral": (400, {"object": "error", "type": "invalid_request_prompt", "code": "3051", "message":
        "Prompt contains 40012 tokens and 0 draft tokens, too large for model with 32768 maximum context length"}),
    "openrouter": (400, error(
        "This endpoint's maximum context length is 262144 tokens. However, you requested about "
        "312400 tokens (280000 of "
        "text input, 32400 in the output). Please reduce the length of either one, or use the \"middle-out\" transform "
        "to compress your prompt automatically.", code=400)),
    "groq": (400, error(
        "Please reduce the length of the messages or completion.", type=OPENAI, param="messages",
        code="context_length_exceeded")),
    "groq bytes": (413, error("Request Entity Too Large", type=OPENAI, code="request_too_large")),
    "xai": (400, {"code": "Client specified an invalid argument", "error":
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens."}),
    "vllm": (400, {"object": "error", "type": "BadRequestError", "code": 400, "param": None, "message":
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, "
        "1000 in the completion). Please reduce the length of the messages or completion."}),
    "vllm newer": (400, error(
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.", type="BadRequestError", code=400)),
    "vllm newest": (400, error(
        "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context "
        "length is 8192 tokens "
        "and your request has 8000 input tokens (1000 > 8192 - 8000).", type="BadRequestError", code=400)),
    "llama.cpp": (400, error(
        "the request exceeds the available context size. try increasing the context size or enable context shift",
        code=400, type="exceed_context_size_error")),
    "llama.cpp newer": (400, error(
        "request (9012 tokens) exceeds the available context size (4096 tokens), try increasing it", code=400,
        type="exceed_context_size_error", n_prompt_tokens=9012, n_ctx=4096)),
    "ollama": (400, error("input length exceeds the context length", type=OPENAI, param=None, code=None)),
    "ollama own": (500, {"error": "the input length exceeds the context length"}),
    "ollama prompt": (400, {"error": "prompt too long; exceeded max context length by 412 tokens"}),
    "lm studio": (400, {"error":
        "Trying to keep the first 5210 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough. Try to load the model with a larger "
        "context length, or provide "
        "a shorter input"}),
    "lm studio stream": (None, {"error":
        "The number of tokens to keep from the initial prompt is greater than the context length. "
        "Try to load the model "
        "with a larger context length, or provide a shorter input"}),
    "bedrock": (400, error("Input is too long for requested model.", type="ValidationException")),
    "bedrock proxy": (400, error(
        "litellm.BadRequestError: BedrockException - {\"message\":\"The model returned the "
        "following errors: Input is too "
        "long for requested model.\"}", type=None, code="400")),
    "bedrock converse": (400, {"message":
        "The model returned the following errors: prompt is too long: 210016 tokens > 200000 maximum"}),
    "together": (422, error(
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9012 "
        "`inputs` tokens and 512 "
        "`max_new_tokens`", type=OPENAI)),
    "fireworks": (400, error("The prompt is too long: 140210, model maximum context length: 131071", type=OPENAI)),
    "moonshot": (400, error(
        "Invalid request: Your request exceeded model token limit: 8192", type=OPENAI)),
    "cohere": (400, {"message": "too many tokens: total number of tokens in the prompt cannot exceed 128000"}),
    "qwen": (400, error("Range of input length should be [1, 129024]", code="invalid_parameter_error", type=OPENAI)),
    "zhipu": (400, error("Prompt exceeds max length", code="1261")),
    "minimax": (400, error("invalid params, context window exceeds limit (2013)", type="bad_request_error")),
    "github copilot": (400, error("prompt token count of 130210 exceeds the limit of 128000",
        code="model_max_prompt_tokens_exceeded")),
    # Larger than what it takes in a whole minute: waiting never helps, a shorter request does.
    "groq more than a minute takes": (413, error(
        "Request too large for model `llama-3.1-8b-instant` in organization `org_x` service tier `on_demand` on tokens "
        "per minute (TPM): Limit 6000, Requested 9012, please reduce your message size and try again.", type="tokens",
        code="rate_limit_exceeded")),
    "a proxy": (413, "<html><h1>413 Request Entity Too Large</h1></html>"),
}  # fmt: skip

OTHERS: dict[str, tuple[int | None, Any, ErrorKind]] = {
    "openai tokens a minute": (429, error(
        "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested "
        "2000.", type="tokens",
        code="rate_limit_exceeded"), K.RATE_LIMIT),
    "anthropic tokens per minute": (429, {"type": "error", "error": {
        "type": "rate_limit_error",
        "message": "This request would exceed your organization's rate limit of 50,000 input tokens per minute. Please "
                   "reduce the prompt length or the maximum tokens requested, or try again later."}}, K.RATE_LIMIT),
    "anthropic long context": (429, {"type": "error", "error": {
        "type": "rate_limit_error", "message": "Extra usage is required for long context requests."}}, K.RATE_LIMIT),
    "gemini quota": (429, [error(
        "You exceeded your current quota. Quota exceeded for metric: "
        "generate_content_free_tier_input_token_count, limit: "
        "250000. Please retry in 34.07s.", code=429, status="RESOURCE_EXHAUSTED")], K.RATE_LIMIT),
    "bedrock throttling": (429, {"message": "Too many tokens, please wait before trying again."}, K.RATE_LIMIT),
    "bedrock throttling by its name": (400, error(
        "Too many tokens, please wait before trying again.", type="ThrottlingException"), K.RATE_LIMIT),
    "openai output limit": (400, error(
        "max_tokens is too large: 200000. This model supports at most 16384 completion tokens, whereas you provided "
        "200000.", type=OPENAI, param="max_tokens", code="invalid_value"), K.INVALID_REQUEST),
    "anthropic output limit": (400, {"type": "error", "error": {
        "type": OPENAI,
        "message": "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for claude-x"}},
        K.INVALID_REQUEST),
    "deepseek output limit": (400, error(
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", type=OPENAI, code=OPENAI),
        K.INVALID_REQUEST),
    "gemini output limit": (400, [error(
        "Unable to submit request because it has a maxOutputTokens value of 99999 but the supported range is from 1 "
        "(inclusive) to 65537 (exclusive).", code=400, status="INVALID_ARGUMENT")], K.INVALID_REQUEST),
    "too many tools": (400, error(
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 140 "
        "instead.", type=OPENAI, param="tools", code="array_above_max_length"), K.INVALID_REQUEST),
    "a long name": (400, error(
        "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string "
        "with length 70 instead.", type=OPENAI, param="tools[0].function.name", code="string_above_max_length"),
        K.INVALID_REQUEST),
    "a large image": (400, {"type": "error", "error": {
        "type": OPENAI, "message": "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum"}},
        K.INVALID_REQUEST),
    "no credit": (402, error(
        "This request requires more credits, or fewer max_tokens. You requested up to 32000 tokens, "
        "but can only afford "
        "1210.", code=402), K.BILLING),
    "overloaded": (529, {"type": "error", "error": {"type": "overloaded_error", "message":
        "Overloaded"}}, K.OVERLOADED),
}  # fmt: skip


@pytest.mark.parametrize("vendor", OVERFLOWS)
def test_every_vendors_words_are_overflow(vendor: str) -> None:
    status, payload = OVERFLOWS[vendor]
    assert of_payload(payload, (), status).kind is K.CONTEXT_OVERFLOW


@pytest.mark.parametrize("vendor", OTHERS)
def test_what_sounds_like_it_is_not(vendor: str) -> None:
    status, payload, kind = OTHERS[vendor]
    assert of_payload(payload, (), status).kind is kind
