// base/simulated_disk.h: files in memory, with the failures of real disks on demand. For tests.
//
// Directories exist as soon as a file or CreateDirectories() names them. Threads: any.
#pragma once

#include <limits>
#include <map>
#include <mutex>
#include <new>
#include <set>

#include "base/disk.h"

namespace deepinfer {

class SimulatedDisk : public Disk {
 public:
  // Bytes that all files together may have, unfinished ones included; writing past it fails as on a
  // full disk (kResourceExhausted).
  void set_capacity_bytes(int64_t capacity_bytes);
  int64_t used_bytes() const;
  // From now on every read that touches byte `offset` of `path` fails with kInternal. -1: none.
  void FailReadsAt(const std::string& path, int64_t offset);
  // Cuts a file, also under its open readers: they find its end early. Requires: path is a file of
  // at least size_bytes.
  void Truncate(const std::string& path, int64_t size_bytes);

  StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override;
  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  StatusOr<std::unique_ptr<UpdatableFile>> OpenUpdate(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  bool IsFile(const std::string& path) override;
  bool IsDirectory(const std::string& path) override;
  Status CreateDirectories(const std::string& path) override;
  Status Remove(const std::string& path) override;

 private:
  class Reader;
  class Writer;
  class Updater;
  // At a page boundary, as a mapped file is.
  template <typename T>
  struct PageAllocator {
    using value_type = T;
    static constexpr std::align_val_t kAlign{static_cast<size_t>(kDirectAlign)};
    PageAllocator() = default;
    template <typename U>
    PageAllocator(const PageAllocator<U>&) {}  // NOLINT: implicit on purpose
    T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlign)); }
    void deallocate(T* at, size_t) { ::operator delete(at, kAlign); }
    bool operator==(const PageAllocator&) const { return true; }
  };
  using Bytes = std::vector<uint8_t, PageAllocator<uint8_t>>;

  // Changes a file's size; the mutex is held.
  Status Resize(const std::string& path, Bytes& bytes, int64_t size_bytes);
  Status ReadAt(const std::string& path, const Bytes& bytes, int64_t offset,
                std::span<uint8_t> out) const;

  mutable std::mutex mutex_;
  int64_t capacity_bytes_ = std::numeric_limits<int64_t>::max();
  int64_t used_bytes_ = 0;
  std::map<std::string, std::shared_ptr<Bytes>> files_;
  std::set<std::string> directories_;
  std::set<const Bytes*> held_;               // by an UpdatableFile
  std::map<std::string, int64_t> bad_bytes_;  // path -> offset
};

}  // namespace deepinfer
