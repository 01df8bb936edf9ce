#include "request/api_fields.h"

#include <array>

namespace deepinfer {
namespace {

constexpr std::string_view kBool = R"({"type": "boolean"})";
constexpr std::string_view kText = R"({"type": "string"})";
constexpr std::string_view kCount = R"({"type": "integer", "minimum": 0})";
constexpr std::string_view kIds = R"({"type": "array", "items": {"type": "integer"}})";
constexpr std::string_view kPenalty = R"({"type": "number", "minimum": -2, "maximum": 2})";
constexpr std::string_view kShare = R"({"type": "number", "minimum": 0, "maximum": 1})";
constexpr std::string_view kSchema = R"({"type": ["object", "boolean", "string"]})";

constexpr auto kFields = std::to_array<ApiField>({
    // ---- the prompt
    {"model", kText, "One of GET /v1/models; absent: the first.", "ctkd"},
    {"messages", R"({"type": "array", "items": {"$ref": "#/components/schemas/Message"}})",
     "The conversation.", "ck"},
    {"prompt",
     R"({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}},)"
     R"( {"type": "array", "items": {"oneOf": [{"type": "string"}, {"type": "array",)"
     R"( "items": {"type": "integer"}}]}}]})",
     "A text, token ids, or an array of these.", "tk"},
    {"content", kText, "The same as prompt.", "k"},
    {"tokens", kIds, "The ids.", "d"},
    {"suffix", kText, "What follows the text to be written; needs fill-in-the-middle tokens.", "t"},
    {"add_special_tokens", kBool, "Put BOS before the text; true by default.", "k"},
    {"return_token_strs", kBool, "Give the text of each token, too.", "k"},
    {"thinking", R"({"type": "object", "properties": {"type": {"enum": ["enabled", "disabled"]}}})",
     "Whether to think before the answer.", "ck"},
    {"reasoning_effort",
     R"({"oneOf": [{"enum": ["none", "minimal", "low", "medium", "high", "xhigh", "max",)"
     R"( "ultra"]}, {"type": "integer", "minimum": 1, "maximum": 100}]})",
     "How long to think: low 50, high 75, max 100, or the number; none: not at all.", "ck"},
    {"chat_template_kwargs",
     R"({"type": "object", "properties": {"thinking": {"type": "boolean"}, "enable_thinking":)"
     R"( {"type": "boolean"}, "reasoning_effort": {"type": ["string", "integer"]},)"
     R"( "drop_thinking": {"type": "boolean"}}})",
     "vLLM's names for the same; drop_thinking: false keeps the reasoning of earlier turns.", "ck"},
    {"add_generation_prompt", kBool, "End the prompt with the header of an answer.", "ck"},
    {"continue_final_message", kBool, "Go on with the last message, an assistant's.", "ck"},

    // ---- tools and structure
    {"tools", R"({"type": "array", "items": {"type": "object"}})", "Functions to be called.", "ck"},
    {"tool_choice", R"({"type": ["string", "object"]})",
     "none, auto, required, a function, or allowed_tools.", "c"},
    {"parallel_tool_calls", kBool, "false: at most one call.", "c"},
    {"response_format",
     R"({"type": "object", "properties": {"type": {"enum": ["text", "json_object",)"
     R"( "json_schema"]}, "json_schema": {"type": "object"}}})",
     "What the answer must match.", "ctk"},
    {"guided_json", kSchema, "A JSON Schema that the answer must match.", "ct"},
    {"guided_regex", kText, "A regular expression that the whole answer must match.", "ct"},
    {"guided_grammar", kText, "EBNF, first rule root, that the answer must match.", "ct"},
    {"guided_choice", R"({"type": "array", "items": {"type": "string"}})",
     "Texts, one of which is the answer.", "ct"},
    {"structured_outputs", R"({"type": "object"})",
     "The same as {json, regex, grammar, choice, json_object}.", "ct"},

    // ---- how to sample
    {"max_tokens", kCount, "Most output tokens; absent: what fits. 0 with echo scores the prompt.",
     "ct"},
    {"max_completion_tokens", kCount, "The same.", "ct"},
    {"temperature", R"({"type": "number", "minimum": 0, "maximum": 2})",
     "0: always the likeliest token.", "ct"},
    {"top_p", kShare, "Of the likeliest tokens, those whose sum first reaches this.", "ct"},
    {"top_k", R"({"type": "integer"})", "The k likeliest; 0 or -1: all.", "ct"},
    {"min_p", kShare, "Drops tokens less likely than this times the likeliest.", "ct"},
    {"repetition_penalty", R"({"type": "number", "exclusiveMinimum": 0})",
     "Above 1: tokens of prompt and output become less likely.", "ct"},
    {"presence_penalty", kPenalty, "Subtracted once a token is in the output.", "ct"},
    {"frequency_penalty", kPenalty, "Subtracted for each time it is.", "ct"},
    {"logit_bias", R"({"type": "object", "additionalProperties": {"type": "number"}})",
     "Token id: what is added to its logit, -100..100.", "ct"},
    {"banned_token_ids", kIds, "Never sampled.", "ct"},
    {"seed", kCount, "Choice i uses seed + i; absent: drawn, and told in the answer.", "ct"},
    {"n", R"({"type": "integer", "minimum": 1, "maximum": 128})", "How many answers.", "ct"},
    {"stop", R"({"type": ["string", "array"], "maxItems": 16})",
     "Texts that end the output where they appear.", "ct"},
    {"stop_token_ids", kIds, "Tokens that end it.", "ct"},
    {"include_stop_str_in_output", kBool, "What ended the output is part of it.", "ct"},
    {"skip_special_tokens", kBool, "Leave special tokens out of texts; true by default.", "ct"},
    {"min_tokens", kCount, "Output tokens before which nothing ends it.", "ct"},
    {"ignore_eos", kBool, "Go on after the end of the answer.", "ct"},

    // ---- what is told
    {"stream", kBool, "Answer in server-sent events.", "ct"},
    {"stream_options",
     R"({"type": "object", "properties": {"include_usage": {"type": "boolean"},)"
     R"( "continuous_usage_stats": {"type": "boolean"}}})",
     "A last chunk with the usage; the usage in every chunk.", "ct"},
    {"logprobs", R"({"type": ["boolean", "integer"], "maximum": 20})",
     "The log-probability of each token: true (chat), or how many alternatives (completions).",
     "ct"},
    {"top_logprobs", R"({"type": "integer", "minimum": 0, "maximum": 20})",
     "How many alternatives, with logprobs: true.", "ct"},
    {"prompt_logprobs", R"({"type": "integer", "minimum": 0, "maximum": 1000})",
     "Log-probabilities of the prompt, and how many alternatives.", "ct"},
    {"echo", kBool, "Put the prompt (completions) or the continued message (chat) before the text.",
     "ct"},
    {"return_token_ids", kBool, "Give the ids of prompt and output, too.", "ct"},

    // ---- whose it is
    {"user_id", R"({"type": "string", "maxLength": 512})",
     "One of your users: cached prompts of one are not found by another.", "ct"},
    {"cache_salt", kText, "Cached prompts are found only with the same salt.", "ct"},
    {"priority", R"({"type": "integer", "minimum": -1000, "maximum": 1000})",
     "Lower ones start first.", "ct"},

    // ---- tests
    {"forced_token_ids", kIds, "Output token i is the i-th of these; only with --scripted.", "ct"},
    {"forced_drafts", kIds, "Accepted drafts of each step, in turn; only with --scripted.", "ct"},

    // ---- refused where they would change the answer
    {"best_of", R"({"const": 1})", "Only 1.", "ct"},
    {"use_beam_search", R"({"const": false})", "Only false.", "ct"},
    {"modalities", R"({"type": "array", "items": {"const": "text"}})", "Only text.", "ct"},
    {"previous_response_id", R"({"type": "null"})", "Refused: nothing is kept.", "ct"},
    {"conversation", R"({"type": "null"})", "Refused: nothing is kept.", "ct"},
    {"functions", R"({"type": "null"})", "Refused: see tools.", "ct"},
    {"function_call", R"({"type": "null"})", "Refused: see tool_choice.", "ct"},
    {"audio", R"({"type": "null"})", "Refused: answers are text.", "ct"},
    {"web_search_options", R"({"type": "null"})", "Refused: nothing is searched.", "ct"},
    {"truncate_prompt_tokens", R"({"type": "null"})", "Refused: prompts are never cut.", "ct"},
});

}  // namespace

char FieldLetter(ApiEndpoint endpoint) {
  switch (endpoint) {
    case ApiEndpoint::kChat:
    case ApiEndpoint::kRender:
      return 'c';
    case ApiEndpoint::kCompletion:
      return 't';
    case ApiEndpoint::kTokenize:
      return 'k';
    case ApiEndpoint::kDetokenize:
      return 'd';
    case ApiEndpoint::kModels:
    case ApiEndpoint::kModel:
    case ApiEndpoint::kOpenApi:
      break;
  }
  return 0;
}

std::span<const ApiField> ApiFields() { return kFields; }

}  // namespace deepinfer
