// base/disk.h: files, as an interface, so that tests can hold them in memory, break them and fill
// them up.
//
// store/, cluster/ and schedule/ touch files only through Disk; checkpoint reading and command
// output use it too. Paths are plain UTF-8 text. Every message names the path and what the system
// said. Threads: Disk, ReadableFile and UpdatableFile from any thread; a WritableFile from one at a
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace deepinfer {

// What offset, address and size of a direct read are multiples of, bytes.
inline constexpr int64_t kDirectAlign = 4096;

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual int64_t size() const = 0;
  virtual int64_t modified_ns() const = 0;  // since 1970; when the file was opened
  // Fills `out` from byte `offset`. Errors: kDataLoss if the file ends before, kInternal from the
  // system.
  virtual Status ReadAt(int64_t offset, std::span<uint8_t> out) const = 0;
  // The same for large parts that are read once: past the system's cache, where the disk can and
  // the bytes are not in it already. Requires: multiples of kDirectAlign; `out` may reach past the
  // end of the file by less than that, and what lies there is left undefined.
  virtual Status ReadDirect(int64_t offset, std::span<uint8_t> out) const;
  // Whether all bytes of a part lie in the system's cache. False where nobody says.
  virtual bool IsCached(int64_t /*offset*/, int64_t /*num_bytes*/) const { return false; }
  // The whole file as memory, read-only, valid as long as this object, at a page boundary.
  // Mapped where the disk can.
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

// A file that changes where it lies: what was written stays although the process may end. One
// holder at a time, on the whole machine.
class UpdatableFile {
 public:
  virtual ~UpdatableFile() = default;
  virtual int64_t size() const = 0;
  // Takes the space of `size_bytes` at once, so that no later write finds the disk full. New bytes
  // are zeros. Errors: kResourceExhausted.
  virtual Status Reserve(int64_t size_bytes) = 0;
  virtual Status WriteAt(int64_t offset, std::span<const uint8_t> bytes) = 0;  // from any thread
  virtual Status Sync() = 0;
};

class Disk {
 public:
  virtual ~Disk() = default;
  virtual StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) = 0;
  virtual StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // Opens a file for change, makes it if need be. Errors: kUnavailable if somebody else holds it.
  virtual StatusOr<std::unique_ptr<UpdatableFile>> OpenUpdate(const std::string& path) = 0;
  // Puts one file in the place of another, whole. Open files stay open. Errors: kNotFound.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
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

// The machine's own file system: pread, cachestat, O_DIRECT, mmap, flock, write to a temporary
// name, fsync, rename.
Disk& RealDisk();

}  // namespace deepinfer
