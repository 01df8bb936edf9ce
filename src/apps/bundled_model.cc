#include "apps/bundled_model.h"

#include <unistd.h>

#include <array>

#include "base/log.h"
#include "base/strings.h"

namespace deepinfer {
namespace {

// The folder of the running program, without the last slash; empty if the system does not say.
std::string ProgramDirectory() {
  std::array<char, 4096> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return {};
  const std::string program(path.data(), static_cast<size_t>(size));
  return program.substr(0, program.rfind('/'));
}

}  // namespace

std::string BundledModelDirectory(Disk& disk) {
  for (const std::string& folder : {StrCat(ProgramDirectory(), "/../share/deepinfer/models/nano"),
                                    std::string(DI_SOURCE_DIR "/models/nano")}) {
    if (disk.IsFile(StrCat(folder, "/model.safetensors.index.json"))) return folder;
  }
  return {};
}

Status ChooseModel(Disk& disk, std::string* model) {
  if (!model->empty()) return OkStatus();
  *model = BundledModelDirectory(disk);
  if (model->empty()) {
    return NotFound(
        "no model: the bundled one (models/nano) is not there; give --model DIR or --model "
        "org/name, or set DEEPINFER_HF_MODEL_DIR");
  }
  LogInfo("model: the bundled one, ", *model, " (--model takes another)");
  return OkStatus();
}

}  // namespace deepinfer
