#include "base/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "base/no_wait.h"
#include "base/system_cache.h"

namespace deepinfer {
namespace {

namespace fs = std::filesystem;

Status FromErrno(const std::string& path, std::string_view doing, int error) {
  const StatusCode code = error == ENOENT || error == ENOTDIR  ? StatusCode::kNotFound
                          : error == EACCES || error == EPERM  ? StatusCode::kPermissionDenied
                          : error == ENOSPC || error == EDQUOT ? StatusCode::kResourceExhausted
                          : error == EWOULDBLOCK               ? StatusCode::kUnavailable
                                                               : StatusCode::kInternal;
  return MakeStatus(code, StrCat(path, ": cannot ", doing, ": ", std::strerror(error)));
}

int64_t ModifiedNs(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

class RealReadable : public ReadableFile {
 public:
  RealReadable(std::string path, int fd, const struct stat& info)
      : path_(std::move(path)),
        fd_(fd),
        size_(static_cast<int64_t>(info.st_size)),
        modified_ns_(ModifiedNs(info)) {}
  ~RealReadable() override {
    if (mapped_ != nullptr) ::munmap(mapped_, static_cast<size_t>(size_));
    if (direct_fd_ >= 0) ::close(direct_fd_);
    ::close(fd_);
  }

  int64_t size() const override { return size_; }
  int64_t modified_ns() const override { return modified_ns_; }

  Status ReadAt(int64_t offset, std::span<uint8_t> out) const override {
    CheckMayWait();
    size_t done = 0;
    while (done < out.size()) {
      const ssize_t got = ::pread(fd_, out.data() + done, out.size() - done,
                                  static_cast<off_t>(offset + static_cast<int64_t>(done)));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return FromErrno(path_, "read", errno);
      if (got == 0) {
        return DataLoss(path_, ": file ends at byte ", offset + static_cast<int64_t>(done), ", ",
                        out.size(), " bytes were expected at ", offset);
      }
      done += static_cast<size_t>(got);
    }
    return OkStatus();
  }

  Status ReadDirect(int64_t offset, std::span<uint8_t> out) const override {
    CheckMayWait();
    const int64_t end = std::min(size_, offset + std::ssize(out));
    if (end < offset) return ReadAt(offset, out);  // says that there is nothing
    int64_t at = offset;
    const int fd = IsCached(offset, end - offset) ? -1 : DirectFd();
    while (fd >= 0 && at < end) {
      const std::span<uint8_t> rest = out.subspan(static_cast<size_t>(at - offset));
      const ssize_t got = ::pread(fd, rest.data(), rest.size(), static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;  // not on this file system, or not this part: the plain way says why
      at += got;
      if (at % kDirectAlign != 0) break;  // the end of the file
    }
    if (at >= end) return OkStatus();
    return ReadAt(at, out.subspan(static_cast<size_t>(at - offset), static_cast<size_t>(end - at)));
  }

  bool IsCached(int64_t offset, int64_t num_bytes) const override {
    constexpr long kCachestat = 451;  // of every Linux from 6.5 on; our headers may be older
    struct {
      uint64_t offset, bytes;
    } const range = {static_cast<uint64_t>(offset), static_cast<uint64_t>(num_bytes)};
    struct {
      uint64_t cached, dirty, writeback, evicted, recently_evicted;  // pages
    } pages = {};
    static const auto page = static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
    const int64_t num_pages = (offset + num_bytes - 1) / page - offset / page + 1;
    return ::syscall(kCachestat, fd_, &range, &pages, 0) == 0 &&
           static_cast<int64_t>(pages.cached) >= num_pages;
  }

  StatusOr<std::span<const uint8_t>> Map() const override {
    std::lock_guard lock(mutex_);
    if (mapped_ == nullptr && size_ > 0) {
      void* at = ::mmap(nullptr, static_cast<size_t>(size_), PROT_READ, MAP_SHARED, fd_, 0);
      if (at == MAP_FAILED) return FromErrno(path_, "map", errno);
      mapped_ = at;
    }
    return std::span(static_cast<const uint8_t*>(mapped_), static_cast<size_t>(size_));
  }

 private:
  int DirectFd() const {  // -1: the file system has no direct reads
    std::lock_guard lock(mutex_);
    if (asked_direct_) return direct_fd_;
    asked_direct_ = true;
    // Not by its path, under which another file may lie by now.
    const std::string self = StrCat("/proc/self/fd/", fd_);
    direct_fd_ = ::open(self.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    return direct_fd_;
  }

  const std::string path_;
  const int fd_;
  const int64_t size_, modified_ns_;
  mutable std::mutex mutex_;
  mutable void* mapped_ = nullptr;
  mutable bool asked_direct_ = false;
  mutable int direct_fd_ = -1;
};

class RealUpdatable : public UpdatableFile {
 public:
  RealUpdatable(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~RealUpdatable() override { ::close(fd_); }  // and with it the lock

  int64_t size() const override {
    struct stat info {};
    return ::fstat(fd_, &info) == 0 ? static_cast<int64_t>(info.st_size) : 0;
  }
  Status Reserve(int64_t size_bytes) override {
    const int error = ::posix_fallocate(fd_, 0, static_cast<off_t>(size_bytes));
    return error != 0 ? FromErrno(path_, "reserve space", error) : OkStatus();
  }
  Status WriteAt(int64_t offset, std::span<const uint8_t> bytes) override {
    CheckMayWait();
    while (!bytes.empty()) {
      const ssize_t put = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return FromErrno(path_, "write", errno);
      bytes = bytes.subspan(static_cast<size_t>(put));
      offset += put;
    }
    return OkStatus();
  }
  Status Sync() override {
    CheckMayWait();
    return ::fdatasync(fd_) != 0 ? FromErrno(path_, "sync", errno) : OkStatus();
  }

 private:
  const std::string path_;
  const int fd_;
};

class RealWritable : public WritableFile {
 public:
  RealWritable(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}
  ~RealWritable() override {
    if (fd_ >= 0) ::close(fd_);
    if (!committed_) ::unlink(temporary_.c_str());
  }

  Status Append(std::span<const uint8_t> bytes) override {
    CheckMayWait();
    while (!bytes.empty()) {
      const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return FromErrno(path_, "write", errno);
      bytes = bytes.subspan(static_cast<size_t>(put));
    }
    return OkStatus();
  }

  Status Commit() override {
    CheckMayWait();
    if (::fsync(fd_) != 0 && errno != EINVAL) return FromErrno(path_, "sync", errno);
    const int fd = fd_;
    fd_ = -1;
    if (::close(fd) != 0) return FromErrno(path_, "close", errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
      return FromErrno(path_, "rename to", errno);
    committed_ = true;
    return OkStatus();
  }

 private:
  const std::string path_, temporary_;
  int fd_;
  bool committed_ = false;
};

class RealDiskImpl : public Disk {
 public:
  StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return FromErrno(path, "open", errno);
    struct stat info {};
    if (::fstat(fd, &info) != 0) {
      const int error = errno;
      ::close(fd);
      return FromErrno(path, "stat", error);
    }
    if (S_ISDIR(info.st_mode)) {
      ::close(fd);
      return FailedPrecondition(path, ": is a directory, a file was expected");
    }
    return std::make_unique<RealReadable>(path, fd, info);
  }

  // The name may have gone to another file between opening and locking: then that one is tried.
  StatusOr<std::unique_ptr<UpdatableFile>> OpenUpdate(const std::string& path) override {
    constexpr int kTries = 100;  // while others remove and make the file
    for (int i = 0; i < kTries; ++i) {
      const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
      if (fd < 0) return FromErrno(path, "open for writing", errno);
      auto file = std::make_unique<RealUpdatable>(path, fd);
      if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return FromErrno(path, "lock", errno);
      struct stat held {
      }, named{};
      if (::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
          held.st_ino == named.st_ino && held.st_dev == named.st_dev) {
        return file;
      }
    }
    return MakeStatus(StatusCode::kUnavailable,
                      StrCat(path, ": cannot be held: others remove it again and again"));
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return FromErrno(from, "rename", errno);
    return OkStatus();
  }

  StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    static std::atomic<uint64_t> counter{0};
    const std::string temporary =
        StrCat(path, ".part-", static_cast<int64_t>(::getpid()), "-", counter.fetch_add(1));
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0) return FromErrno(path, "create", errno);
    return std::make_unique<RealWritable>(path, temporary, fd);
  }

  StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    std::error_code error;
    if (!fs::exists(directory, error)) return NotFound(directory, ": no such directory");
    if (!fs::is_directory(directory, error)) {
      return FailedPrecondition(directory, ": not a directory");
    }
    std::vector<std::string> names;
    fs::directory_iterator at(directory, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
      names.push_back(at->path().filename().string());
    }
    if (error) return FromErrno(directory, "list", error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  bool IsFile(const std::string& path) override {
    std::error_code error;
    return fs::is_regular_file(path, error);
  }
  bool IsDirectory(const std::string& path) override {
    std::error_code error;
    return fs::is_directory(path, error);
  }
  Status CreateDirectories(const std::string& path) override {
    std::error_code error;
    fs::create_directories(path, error);
    return error ? FromErrno(path, "create directory", error.value()) : OkStatus();
  }
  Status Remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return FromErrno(path, "remove", errno);
    return OkStatus();
  }
};

}  // namespace

Status ReadableFile::ReadDirect(int64_t offset, std::span<uint8_t> out) const {
  if (offset > size()) return ReadAt(offset, out);  // says that there is nothing
  return ReadAt(offset, out.first(static_cast<size_t>(std::min(std::ssize(out), size() - offset))));
}

StatusOr<std::string> Disk::ReadText(const std::string& path, int64_t limit_bytes) {
  DI_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, OpenRead(path));
  if (file->size() > limit_bytes) {
    return ResourceExhausted(path, ": ", file->size(), " bytes, at most ", limit_bytes,
                             " are read");
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  DI_RETURN_IF_ERROR(
      file->ReadAt(0, std::span(reinterpret_cast<uint8_t*>(text.data()), text.size())));
  if (!text.empty()) return text;
  // What the system writes while it is read (/proc, control groups) has text although no size.
  for (uint8_t byte; std::ssize(text) < limit_bytes; text += static_cast<char>(byte)) {
    if (!file->ReadAt(std::ssize(text), {&byte, 1}).ok()) break;
  }
  return text;
}

Status Disk::WriteText(const std::string& path, std::string_view text) {
  DI_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, Create(path));
  DI_RETURN_IF_ERROR(file->Append(text));
  return file->Commit();
}

void DropFromSystemCache(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ::fdatasync(fd);  // only clean pages can be dropped
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
}

Disk& RealDisk() {
  static RealDiskImpl disk;
  return disk;
}

}  // namespace deepinfer
