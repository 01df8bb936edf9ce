// apps/scratch_disk.h: a disk with one folder that exists only in memory.
//
// For work that needs files for a while: nothing to name, to clean up or to run out of outside this
// process. Threads: any.
#pragma once

#include <string>

#include "base/simulated_disk.h"

namespace deepinfer {

class ScratchDisk : public Disk {
 public:
  // Paths that begin with `folder` are in memory; all others are `below`'s, which outlives this.
  ScratchDisk(Disk& below, std::string folder) : below_(below), folder_(std::move(folder)) {}

  StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override {
    return At(path).OpenRead(path);
  }
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    return At(path).Create(path);
  }
  StatusOr<std::unique_ptr<UpdatableFile>> OpenUpdate(const std::string& path) override {
    return At(path).OpenUpdate(path);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return At(from).Rename(from, to);  // both on one side, as on a mounted disk
  }
  StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    return At(directory).List(directory);
  }
  bool IsFile(const std::string& path) override { return At(path).IsFile(path); }
  bool IsDirectory(const std::string& path) override { return At(path).IsDirectory(path); }
  Status CreateDirectories(const std::string& path) override {
    return At(path).CreateDirectories(path);
  }
  Status Remove(const std::string& path) override { return At(path).Remove(path); }

 private:
  Disk& At(const std::string& path) { return path.starts_with(folder_) ? memory_ : below_; }

  Disk& below_;
  const std::string folder_;
  SimulatedDisk memory_;
};

}  // namespace deepinfer
