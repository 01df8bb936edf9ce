// apps/result_output.h: where a command's results go: stdout, or a file that appears whole or not
// at all.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/disk.h"
#include "base/status.h"

namespace deepinfer {

class ResultOutput {
 public:
  // path "-": stdout. Errors: as Disk::Create; kInvalidArgument for a device or pipe, which cannot
  // appear whole.
  static StatusOr<ResultOutput> Open(Disk& disk, const std::string& path);

  Status Write(std::string_view text);
  // Puts the file in place. Without it, nothing is left behind.
  Status Commit();

 private:
  std::unique_ptr<WritableFile> file_;  // null: stdout
};

}  // namespace deepinfer
