#include "row_maker.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tokens/control_tokens.h"
#include "tokens/prompt_encoder.h"

namespace deepinfer {
namespace {

// Thinking is on for half of the conversations, more often where it is what the answer needs. Now
// and then the effort is not the usual one.
Thinking DrawThinking(Rng& rng, const TaskKind& kind) {
  constexpr int kEfforts[] = {50, 100};
  Thinking thinking;
  thinking.enabled = Chance(rng, kind.thinks ? 0.75 : 0.5);
  if (Chance(rng, 0.2)) thinking.effort = Pick(rng, kEfforts);
  return thinking;
}

StatusOr<MixPart> ParsePart(std::string_view text) {
  const size_t equals = text.find('=');
  MixPart part{FindTask(text.substr(0, equals)), 0};
  if (part.kind == nullptr) {
    std::vector<std::string_view> names;
    for (const TaskKind& kind : AllTasks()) names.push_back(kind.name);
    return InvalidArgument("mix: expected a task of ", Join(names, ", "), ", found \"",
                           text.substr(0, equals), "\"");
  }
  const std::string_view share =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  const char* const end = share.data() + share.size();
  const auto [stop, error] = std::from_chars(share.data(), end, part.share);
  if (error != std::errc() || stop != end || !(part.share > 0) || !std::isfinite(part.share)) {
    return InvalidArgument("mix: ", part.kind->name, ": expected a share above 0, found \"", share,
                           "\"");
  }
  return part;
}

}  // namespace

StatusOr<ControlIds> ControlIds::Of(const Tokenizer& tokenizer) {
  if (tokenizer.vocab_size() > 65536) {
    return FailedPrecondition("tokenizer: expected at most 65536 ids, found ",
                              tokenizer.vocab_size(), "; rows hold 16 bits an id");
  }
  ControlIds ids{};
  const std::pair<std::string_view, int32_t*> wanted[] = {
      {kBosToken, &ids.bos}, {kEosToken, &ids.eos}, {kAssistantToken, &ids.assistant}};
  for (const auto& [token, id] : wanted) {
    const std::optional<int32_t> found = tokenizer.IdOf(token);
    if (!found) return FailedPrecondition("tokenizer: expected the token ", token, ", found none");
    *id = *found;
  }
  return ids;
}

StatusOr<WeightedIds> EncodeExercise(const Exercise& exercise, const Tokenizer& tokenizer,
                                     const ControlIds& control, const PromptTexts& texts) {
  CHECK(exercise.answer().role == Role::kAssistant);
  DI_ASSIGN_OR_RETURN(const RenderedPrompt prompt, RenderPrompt(exercise.conversation, texts));
  DI_ASSIGN_OR_RETURN(EncodedPrompt encoded, EncodePrompt(prompt, tokenizer));
  WeightedIds result{std::move(encoded.ids), {}};
  result.weights.assign(result.ids.size(), kContext);
  // The think tag behind the header is the prompt's, so an answer begins two tokens after it.
  bool in_answer = false;
  for (size_t i = 0; i < result.ids.size(); ++i) {
    if (i >= 2 && result.ids[i - 2] == control.assistant) in_answer = true;
    if (in_answer) result.weights[i] = kAnswer;
    if (result.ids[i] == control.eos) in_answer = false;
    if (result.ids[i] == control.bos) result.weights[i] = kNoTarget;
  }
  return result;
}

StatusOr<std::vector<MixPart>> ParseMix(std::string_view text) {
  constexpr size_t kPartsMax = 256;  // a byte in the stream
  std::vector<MixPart> mix;
  double sum = 0;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    DI_ASSIGN_OR_RETURN(const MixPart part, ParsePart(text.substr(begin, end - begin)));
    const bool twice = std::any_of(mix.begin(), mix.end(),
                                   [&](const MixPart& other) { return other.kind == part.kind; });
    if (twice) return InvalidArgument("mix: ", part.kind->name, " stands twice; give one share");
    mix.push_back(part);
    sum += part.share;
    begin = end + 1;
  }
  if (mix.size() > kPartsMax) {
    return InvalidArgument("mix: expected at most ", kPartsMax, " tasks, found ", mix.size());
  }
  for (MixPart& part : mix) part.share /= sum;
  return mix;
}

RowMaker::RowMaker(RowOptions options, const Tokenizer& tokenizer, const ControlIds& control,
                   const PromptTexts& texts, const Material* material)
    : options_(std::move(options)),
      tokenizer_(tokenizer),
      control_(control),
      texts_(texts),
      material_(material),
      rng_(options_.seed) {
  CHECK(!options_.mix.empty());
  CHECK(options_.row_tokens > 0);
}

size_t RowMaker::DrawPart() {
  double left = rng_.UniformDouble();
  for (size_t i = 0; i + 1 < options_.mix.size(); ++i) {
    left -= options_.mix[i].share;
    if (left < 0) return i;
  }
  return options_.mix.size() - 1;
}

StatusOr<Exercise> RowMaker::DrawConversation(const TaskKind& kind, int32_t num_left) {
  // What fills its room gets the room that is left; below the least it is cut like anything else.
  constexpr int32_t kFilledMin = 256, kShortMax = 1024;
  const int32_t max_tokens =
      kind.fills ? std::max(num_left, kFilledMin) : std::max(options_.row_tokens, kShortMax);
  DrawContext context{.rng = rng_,
                      .split = Split::kTraining,
                      .max_tokens = max_tokens,
                      .tokenizer = tokenizer_,
                      .material = material_};
  DI_ASSIGN_OR_RETURN(Exercise exercise, kind.draw(context));
  exercise.conversation.thinking = DrawThinking(rng_, kind);
  return exercise;
}

StatusOr<Row> RowMaker::Next() {
  Row row;
  row.mix_idx = static_cast<uint8_t>(DrawPart());
  const TaskKind& kind = *options_.mix[row.mix_idx].kind;
  const auto size = static_cast<size_t>(options_.row_tokens);
  while (row.tokens.ids.size() < size) {
    const auto num_left = static_cast<int32_t>(size - row.tokens.ids.size());
    StatusOr<Exercise> exercise = DrawConversation(kind, num_left);
    if (!exercise.ok()) return Annotate(exercise.status(), "task ", kind.name);
    StatusOr<WeightedIds> encoded = EncodeExercise(*exercise, tokenizer_, control_, texts_);
    if (!encoded.ok()) return Annotate(encoded.status(), "task ", kind.name);
    row.tokens.ids.insert(row.tokens.ids.end(), encoded->ids.begin(), encoded->ids.end());
    row.tokens.weights.insert(row.tokens.weights.end(), encoded->weights.begin(),
                              encoded->weights.end());
    row.exercises.push_back(*std::move(exercise));
  }
  row.tokens.ids.resize(size);
  row.tokens.weights.resize(size);
  return row;
}

}  // namespace deepinfer
