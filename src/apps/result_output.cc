#include "apps/result_output.h"

#include "apps/terminal.h"

namespace deepinfer {

StatusOr<ResultOutput> ResultOutput::Open(Disk& disk, const std::string& path) {
  ResultOutput output;
  if (path == "-") return output;
  if (IsDeviceOrPipe(path)) {
    return InvalidArgument("--output: ", path, " is no regular file; use - and redirect stdout");
  }
  if (disk.IsDirectory(path)) return InvalidArgument("--output: ", path, " is a directory");
  DI_ASSIGN_OR_RETURN(output.file_, disk.Create(path));
  return output;
}

Status ResultOutput::Write(std::string_view text) {
  return file_ != nullptr ? file_->Append(text) : WriteStdout(text);
}

Status ResultOutput::Commit() { return file_ != nullptr ? file_->Commit() : OkStatus(); }

}  // namespace deepinfer
