// apps/bundled_model.h: the checkpoint that comes with the program, and so the default of every
// command.
#pragma once

#include <string>

#include "base/disk.h"
#include "base/status.h"

namespace deepinfer {

// models/nano of an installation (share/deepinfer/ beside the program's bin/), else of the source
// tree that the program was built from. Empty: neither holds weights.
std::string BundledModelDirectory(Disk& disk);

// `*model` as given by --model or the environment; if that is empty, the bundled one. Errors:
// kNotFound saying what to give.
Status ChooseModel(Disk& disk, std::string* model);

}  // namespace deepinfer
