// eval/exercise_for_tests.h: the bundled model's tokenizer and texts, and a small material.
#pragma once

#include <memory>
#include <string>

#include "base/check.h"
#include "base/disk.h"
#include "eval/exercise.h"
#include "eval/gloss.h"
#include "eval/material.h"
#include "tokens/prompt_encoder.h"
#include "tokens/prompt_texts.h"

namespace deepinfer {

inline const Tokenizer& NanoTokenizer() {
  static const auto* const kLoaded = new StatusOr<std::unique_ptr<Tokenizer>>(
      Tokenizer::Load(RealDisk(), DI_SOURCE_DIR "/models/nano/tokenizer.json"));
  CHECK(kLoaded->ok());
  return ***kLoaded;
}

inline const PromptTexts& NanoTexts() {
  static const auto* const kLoaded =
      new StatusOr<PromptTexts>(LoadPromptTexts(RealDisk(), DI_SOURCE_DIR "/models/nano"));
  CHECK(kLoaded->ok());
  return **kLoaded;
}

inline MaterialTexts SmallTexts() {
  return {.hay =
              "The pump moves water. It was built in 1904. Nobody knows why it stopped.\n"
              "A second paragraph, without a full stop\n",
          .glosses =
              "kite\tnoun\ta light frame covered with paper that flies in the wind\t\t1\n"
              "run\tverb\tto move fast on foot\tsprint; dash\t1\n"
              "odd\tadj\tnot divisible by two\t\t0\n",
          .tools = R"({"name": "get_tide", "description": "Height of the tide.", "parameters": )"
                   R"({"type": "object", "properties": {"harbour": {"type": "string"}}, )"
                   R"("required": ["harbour"]}})"
                   "\n",
          .words = "granite\nvalley\nsignal\nmeadow\n"};
}

inline const Material& SmallMaterial() {
  static const auto* const kParsed =
      new StatusOr<std::unique_ptr<const Material>>(Material::Parse(SmallTexts()));
  CHECK(kParsed->ok());
  return ***kParsed;
}

inline const GlossCheck& SmallGlossCheck() {
  static const auto* const kMade = new GlossCheck(MakeGlossCheck(SmallMaterial()));
  return *kMade;
}

// Training with the small material, evaluation with the check of its definitions.
inline DrawContext ContextForTests(Rng& rng, Split split, int32_t max_tokens) {
  DrawContext context{
      .rng = rng, .split = split, .max_tokens = max_tokens, .tokenizer = NanoTokenizer()};
  if (split == Split::kTraining) context.material = &SmallMaterial();
  if (split == Split::kHeldOut) {
    context.gloss_check = &SmallGlossCheck();
    context.published_tools = SmallMaterial().tools();
  }
  return context;
}

inline std::vector<int32_t> IdsOf(const Conversation& conversation) {
  const StatusOr<RenderedPrompt> prompt = RenderPrompt(conversation, NanoTexts());
  CHECK(prompt.ok());
  StatusOr<EncodedPrompt> encoded = EncodePrompt(*prompt, NanoTokenizer());
  CHECK(encoded.ok());
  return encoded->ids;
}

}  // namespace deepinfer
