#include "apps/sampling_flags.h"

#include <charconv>

namespace deepinfer {
namespace {

template <typename T>
bool ParseWhole(std::string_view text, T& out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end;
}

// Flags that may be repeated and hold lists themselves.
StatusOr<std::vector<int32_t>> JoinIds(const std::vector<std::string>& texts,
                                       std::string_view where) {
  std::vector<int32_t> all;
  for (const std::string& text : texts) {
    DI_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, ParseTokenIds(text, where));
    all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

StatusOr<std::pair<int32_t, double>> ParseBias(const std::string& text) {
  const size_t colon = text.find(':');
  std::pair<int32_t, double> bias;
  const std::string_view view = text;
  if (colon != std::string::npos && ParseWhole(view.substr(0, colon), bias.first) &&
      ParseWhole(view.substr(colon + 1), bias.second)) {
    return bias;
  }
  return InvalidArgument("--logit-bias: found \"", text, "\", expected ID:BIAS, such as 17:-2.5");
}

}  // namespace

StatusOr<std::vector<int32_t>> ParseTokenIds(const std::string& text, std::string_view where) {
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const size_t first = std::min(text.find_first_not_of(' ', begin), end);
    int32_t id = 0;
    if (!ParseWhole(std::string_view(text).substr(first, end - first), id)) {
      return InvalidArgument(where, ": found \"", text, "\", expected ids such as 1,2,3");
    }
    ids.push_back(id);
    begin = end + 1;
  }
  return ids;
}

void SamplingFlags::AddTo(OptionSet& options) {
  SamplingParams& s = request.sampling;
  options.Add({.flag = "max-tokens",
               .help = "most tokens to produce; -1: until EOS or max-model-len; 0: only score the "
                       "prompt (with --prompt-logprobs)",
               .unit = "tokens",
               .min = -1},
              &max_tokens);
  options.Add({.flag = "temperature",
               .help = "divides the logits; 0: always the likeliest token",
               .min = 0,
               .max = 100},
              &s.temperature);
  options.Add({.flag = "top-p",
               .help = "samples among the likeliest tokens that together reach this "
                       "probability"},
              &s.top_p);
  options.Add({.flag = "top-k",
               .environment = "DEEPINFER_SAMPLER_FORCE_TOPK",
               .help = "samples among the k likeliest tokens; 0: all",
               .unit = "tokens",
               .min = -1},
              &s.top_k);
  options.Add({.flag = "min-p",
               .help = "leaves out tokens less likely than this share of the likeliest",
               .min = 0,
               .max = 1},
              &s.min_p);
  options.Add({.flag = "seed", .help = "same seed, same text; not given: drawn and reported"},
              &request.seed);
  options.Add(
      {.flag = "n", .help = "answers a prompt; answer i uses seed + i", .min = 1, .max = 128},
      &request.num_choices);
  options.Add({.flag = "stop", .help = "ends the output where this text appears", .unit = "TEXT"},
              &request.stop);
  options.Add({.flag = "stop-token-ids", .help = "ends the output as EOS does", .unit = "IDS"},
              &stop_token_ids);
  options.Add({.flag = "include-stop", .help = "keeps the text that ended the output"},
              &request.include_stop);
  options.Add({.flag = "skip-special-tokens", .help = "leaves special tokens out of the text"},
              &request.skip_special_tokens);
  options.Add({.flag = "min-tokens",
               .help = "tokens before EOS or a stop may come",
               .unit = "tokens",
               .min = 0},
              &s.min_tokens);
  options.Add({.flag = "ignore-eos", .help = "goes on after EOS"}, &s.ignore_eos);
  options.Add(
      {.flag = "repetition-penalty", .help = "> 1: tokens of prompt and output become less likely"},
      &s.repetition_penalty);
  options.Add({.flag = "frequency-penalty",
               .help = "taken from a token's logit for each time it is in the output",
               .min = -2,
               .max = 2},
              &s.frequency_penalty);
  options.Add({.flag = "presence-penalty",
               .help = "taken from a token's logit if it is in the output",
               .min = -2,
               .max = 2},
              &s.presence_penalty);
  options.Add({.flag = "logit-bias", .help = "added to a token's logit", .unit = "ID:BIAS"},
              &logit_bias);
  options.Add({.flag = "banned-token-ids",
               .environment = "DEEPINFER_DECODE_TOKEN_BLACKLIST",
               .help = "never produced",
               .unit = "IDS"},
              &banned_token_ids);
  options.Add({.flag = "forced-token-ids", .help = "the output begins with these", .unit = "IDS"},
              &forced_token_ids);
  options.Add({.flag = "logprobs",
               .help = "with --json: log-probability of every output token and of the n likeliest; "
                       "-1: none",
               .min = -1,
               .max = 1000},
              &logprobs);
  options.Add(
      {.flag = "prompt-logprobs", .help = "the same for the prompt", .min = -1, .max = 1000},
      &prompt_logprobs);
  options.Add(
      {.flag = "filtered-logprobs",
       .help = "log-probabilities after temperature and filters instead of the model's own"},
      &s.filtered_logprobs);
}

StatusOr<Request> SamplingFlags::ToRequest() const {
  Request result = request;
  if (max_tokens >= 0) result.max_tokens = max_tokens;
  if (logprobs >= 0) result.sampling.logprobs = logprobs;
  if (prompt_logprobs >= 0) result.prompt_logprobs = prompt_logprobs;
  for (const std::string& text : logit_bias) {
    DI_ASSIGN_OR_RETURN(const auto bias, ParseBias(text));
    result.sampling.logit_bias.push_back(bias);
  }
  SamplingParams& s = result.sampling;
  DI_ASSIGN_OR_RETURN(s.stop_token_ids, JoinIds(stop_token_ids, "--stop-token-ids"));
  DI_ASSIGN_OR_RETURN(s.banned_token_ids, JoinIds(banned_token_ids, "--banned-token-ids"));
  DI_ASSIGN_OR_RETURN(s.forced_token_ids, JoinIds(forced_token_ids, "--forced-token-ids"));
  return result;
}

}  // namespace deepinfer
