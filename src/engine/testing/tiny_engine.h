// engine/testing/tiny_engine.h: the whole engine over a tiny checkpoint made in memory. Tests only.
#pragma once

#include <memory>
#include <vector>

#include "base/simulated_disk.h"
#include "engine/loaded_engine.h"

namespace deepinfer::testing {

inline constexpr char kTinyDir[] = "/tiny";

// One disk for all tests of a program: making the checkpoint is the slow part.
SimulatedDisk& TinyDisk();

// One thread and 4 MiB of KV pages, if `options` does not say otherwise.
std::unique_ptr<LoadedEngine> LoadTiny(EngineOptions options, int32_t grammar_workers = 0);

// BOS and ordinary ids; other salts give other ids.
std::vector<int32_t> TinyPrompt(int32_t length, int32_t salt);

}  // namespace deepinfer::testing
