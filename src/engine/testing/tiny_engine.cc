#include "engine/testing/tiny_engine.h"

#include "base/check.h"
#include "base/log.h"
#include "base/rng.h"
#include "model/synthetic_checkpoint.h"

namespace deepinfer::testing {

SimulatedDisk& TinyDisk() {
  static SimulatedDisk* const disk = [] {
    auto* made = new SimulatedDisk();
    Disk& real = RealDisk();
    const std::string from = DI_SOURCE_DIR "/tools/tiny/";
    const std::string to = kTinyDir;
    // Room for prompts longer than the indexer's candidate filter and several chunks.
    std::string config = *real.ReadText(from + "tiny.json");
    constexpr std::string_view kLength = "\"max_position_embeddings\": 4096";
    const size_t at = config.find(kLength);
    CHECK(at != config.npos);
    config.replace(at, kLength.size(), "\"max_position_embeddings\": 16384");
    CHECK(WriteSyntheticCheckpoint(*made, config, 101, to).ok());
    CHECK(made->WriteText(to + "/tokenizer.json", *real.ReadText(from + "tokenizer.json")).ok());
    CHECK(made->WriteText(to + "/encoding/prompt_texts.json",
                          *real.ReadText(from + "prompt_texts.json"))
              .ok());
    return made;
  }();
  return *disk;
}

std::unique_ptr<LoadedEngine> LoadTiny(EngineOptions options, int32_t grammar_workers) {
  options.model = kTinyDir;
  options.grammar_workers = grammar_workers;
  if (options.kv_cache_bytes == 0) options.kv_cache_bytes = 4 << 20;
  if (options.num_threads == 0) options.num_threads = 1;
  auto engine = LoadedEngine::Load(options, TinyDisk(), RealRng());
  if (!engine.ok()) LogError("tiny engine: ", MessageOf(engine.status()));
  CHECK(engine.ok());
  return *std::move(engine);
}

std::vector<int32_t> TinyPrompt(int32_t length, int32_t salt) {
  std::vector<int32_t> ids = {0};
  for (int32_t i = 1; i < length; ++i) ids.push_back(16 + (i * 37 + salt * 101 + i * i % 13) % 490);
  return ids;
}

}  // namespace deepinfer::testing
