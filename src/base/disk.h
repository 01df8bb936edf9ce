// base/disk.h: files, as an interface, so that tests can hold them in memory, break them and fill
// them up.
//
// store/, cluster/ and schedule/ touch files only through Disk; checkpoint reading and command
// output use it too. Paths are plain UTF-8 text. Every message names the path and what the system
// said. Threads: Disk and ReadableFile from any thread; a WritableFile from one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace deepinfer {

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual int64_t size() const = 0;
  // Fills `out` from byte `offset`. Errors: kDataLoss if the file ends before, kInternal from the
  // system.
  virtual Status ReadAt(int64_t offset, std::span<uint8_t> out) const = 0;
  // The whole file as memory, read-only, valid as long as this object. Mapped where the disk can.
  virtual StatusOr<std::span<const uint8_t>> Map() const = 0;
};

// Written under a temporary name beside `path`; nothing appears under `path` before Commit().
// Destruction without Commit() removes what was written.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Status Append(std::span<const uint8_t> bytes) = 0;
  virtual Status Commit() = 0;  // flush, sync, rename over `path`
  Status Append(std::string_view text) {
    return Append(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }
};

class Disk {
 public:
  virtual ~Disk() = default;
  virtual StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) = 0;
  virtual StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Names (not paths) in a directory, sorted. Errors: kNotFound, kFailedPrecondition if not a
  // directory.
  virtual StatusOr<std::vector<std::string>> List(const std::string& directory) = 0;
  virtual bool IsFile(const std::string& path) = 0;
  virtual bool IsDirectory(const std::string& path) = 0;
  virtual Status CreateDirectories(const std::string& path) = 0;
  virtual Status Remove(const std::string& path) = 0;

  // A whole file as text. Errors: as OpenRead; kResourceExhausted above limit_bytes.
  StatusOr<std::string> ReadText(const std::string& path, int64_t limit_bytes = int64_t{1} << 30);
  Status WriteText(const std::string& path, std::string_view text);
};

// The machine's own file system: pread, mmap, write to a temporary name, fsync, rename.
Disk& RealDisk();

}  // namespace deepinfer
