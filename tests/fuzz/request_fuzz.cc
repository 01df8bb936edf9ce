// The input is a JSONL file of requests, for an engine over the tiny checkpoint.
#include "apps/generate_inputs.h"
#include "base/rng.h"
#include "base/simulated_disk.h"
#include "fuzz.h"
#include "model/synthetic_checkpoint.h"

namespace deepinfer::fuzz {
namespace {

constexpr uint64_t kSeed = 101;

// Holds the checkpoint; made once.
SimulatedDisk& TinyDisk() {
  static SimulatedDisk* const disk = [] {
    auto* made = new SimulatedDisk;
    const std::string config = RepositoryFile("tools/tiny/tiny.json");
    CHECK(WriteSyntheticCheckpoint(*made, config, kSeed, "tiny").ok());
    const auto copy = [made](const std::string& name, const std::string& to) {
      CHECK(made->WriteText("tiny/" + to, RepositoryFile("tools/tiny/" + name)).ok());
    };
    copy("tokenizer.json", "tokenizer.json");
    copy("prompt_texts.json", "encoding/prompt_texts.json");
    return made;
  }();
  return *disk;
}

LoadedEngine& TinyEngine() {
  static const auto* const engine = [] {
    EngineOptions options{.model = "tiny"};
    options.kv_cache_bytes = 4 << 20;
    options.num_threads = 1;
    auto loaded = LoadedEngine::Load(options, TinyDisk(), RealRng());
    if (!loaded.ok()) CheckFailed(__FILE__, __LINE__, MessageOf(loaded.status()));
    return new std::unique_ptr<LoadedEngine>(*std::move(loaded));
  }();
  return **engine;
}

int64_t NumLinesWithText(std::string_view text) {
  int64_t count = 0;
  bool blank = true;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == '\n') {
      count += blank ? 0 : 1;
      blank = true;
    } else if (text[i] != ' ' && text[i] != '\t' && text[i] != '\r') {
      blank = false;
    }
  }
  return count;
}

// Submits and cancels: the engine's own checks see every request that could be read.
void CheckSubmit(const Request& request) {
  EngineCore& core = TinyEngine().core();
  const auto id = core.Submit(request);
  if (!id.ok()) return CheckRefusal(id.status());
  core.Cancel(*id);
  int32_t num_ended = 0;
  while (core.HasWork()) {
    for (const Event& event : core.Step()) {
      num_ended += std::holds_alternative<FinishEvent>(event) ? 1 : 0;
    }
  }
  CHECK_EQ(num_ended, request.num_choices);
}

void CheckInput(const GenerateInput& input) {
  if (!input.request.ok()) {
    CheckRefusal(input.request.status());
    CHECK(MessageOf(input.request.status()).starts_with(StrCat("line ", input.line, ": ")));
    return;
  }
  CheckSubmit(input.request->request);
}

}  // namespace
}  // namespace deepinfer::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace deepinfer;
  const std::string_view text = fuzz::AsText(data, size);
  GenerateFlags flags;
  flags.input = "requests.jsonl";
  SimulatedDisk& disk = fuzz::TinyDisk();
  CHECK(disk.WriteText(flags.input, text).ok());
  const auto inputs = ReadInputs(flags, disk, fuzz::TinyEngine());
  CHECK(inputs.ok());
  CHECK_EQ(static_cast<int64_t>(inputs->size()), fuzz::NumLinesWithText(text));
  for (const GenerateInput& input : *inputs) fuzz::CheckInput(input);
  return 0;
}
