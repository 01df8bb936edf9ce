#include "base/simulated_disk.h"

#include <algorithm>

#include "base/check.h"

namespace deepinfer {

class SimulatedDisk::Reader : public ReadableFile {
 public:
  Reader(const SimulatedDisk& disk, std::string path, std::shared_ptr<Bytes> bytes)
      : disk_(disk),
        path_(std::move(path)),
        bytes_(std::move(bytes)),
        size_(static_cast<int64_t>(bytes_->size())) {}

  int64_t size() const override { return size_; }
  int64_t modified_ns() const override { return 0; }
  Status ReadAt(int64_t offset, std::span<uint8_t> out) const override {
    return disk_.ReadAt(path_, *bytes_, offset, out);
  }
  StatusOr<std::span<const uint8_t>> Map() const override { return std::span(*bytes_); }

 private:
  const SimulatedDisk& disk_;
  const std::string path_;
  const std::shared_ptr<Bytes> bytes_;
  const int64_t size_;
};

class SimulatedDisk::Writer : public WritableFile {
 public:
  Writer(SimulatedDisk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  ~Writer() override {
    std::lock_guard lock(disk_.mutex_);
    if (bytes_ != nullptr) disk_.used_bytes_ -= static_cast<int64_t>(bytes_->size());
  }

  using WritableFile::Append;
  Status Append(std::span<const uint8_t> bytes) override {
    std::lock_guard lock(disk_.mutex_);
    const int64_t count = static_cast<int64_t>(bytes.size());
    if (count > disk_.capacity_bytes_ - disk_.used_bytes_) {
      return ResourceExhausted(path_, ": cannot write: No space left on device");
    }
    bytes_->insert(bytes_->end(), bytes.begin(), bytes.end());
    disk_.used_bytes_ += count;
    return OkStatus();
  }

  Status Commit() override {
    std::lock_guard lock(disk_.mutex_);
    CHECK(bytes_ != nullptr);  // once only
    std::shared_ptr<Bytes>& at = disk_.files_[path_];
    if (at != nullptr) disk_.used_bytes_ -= static_cast<int64_t>(at->size());
    at = std::move(bytes_);
    return OkStatus();
  }

 private:
  SimulatedDisk& disk_;
  const std::string path_;
  std::shared_ptr<Bytes> bytes_ = std::make_shared<Bytes>();
};

class SimulatedDisk::Updater : public UpdatableFile {
 public:
  Updater(SimulatedDisk& disk, std::string path, std::shared_ptr<Bytes> bytes)
      : disk_(disk), path_(std::move(path)), bytes_(std::move(bytes)) {}
  ~Updater() override {
    std::lock_guard lock(disk_.mutex_);
    disk_.held_.erase(bytes_.get());
  }

  int64_t size() const override {
    std::lock_guard lock(disk_.mutex_);
    return std::ssize(*bytes_);
  }
  Status Reserve(int64_t size_bytes) override {
    std::lock_guard lock(disk_.mutex_);
    return disk_.Resize(path_, *bytes_, std::max(size_bytes, std::ssize(*bytes_)));
  }
  Status WriteAt(int64_t offset, std::span<const uint8_t> bytes) override {
    std::lock_guard lock(disk_.mutex_);
    DI_RETURN_IF_ERROR(
        disk_.Resize(path_, *bytes_, std::max(offset + std::ssize(bytes), std::ssize(*bytes_))));
    std::copy(bytes.begin(), bytes.end(), bytes_->begin() + offset);
    return OkStatus();
  }
  Status Sync() override { return OkStatus(); }

 private:
  SimulatedDisk& disk_;
  const std::string path_;
  const std::shared_ptr<Bytes> bytes_;
};

Status SimulatedDisk::Resize(const std::string& path, Bytes& bytes, int64_t size_bytes) {
  const int64_t more = size_bytes - std::ssize(bytes);
  if (more > capacity_bytes_ - used_bytes_) {
    return ResourceExhausted(path, ": cannot write: No space left on device");
  }
  bytes.resize(static_cast<size_t>(size_bytes));
  used_bytes_ += more;
  return OkStatus();
}

StatusOr<std::unique_ptr<UpdatableFile>> SimulatedDisk::OpenUpdate(const std::string& path) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Bytes>& bytes = files_[path];
  if (bytes == nullptr) bytes = std::make_shared<Bytes>();
  if (!held_.insert(bytes.get()).second) {
    return MakeStatus(StatusCode::kUnavailable,
                      StrCat(path, ": cannot lock: Resource temporarily unavailable"));
  }
  return std::make_unique<Updater>(*this, path, bytes);
}

Status SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  std::lock_guard lock(mutex_);
  const auto at = files_.find(from);
  if (at == files_.end()) return NotFound(from, ": cannot rename: No such file or directory");
  std::shared_ptr<Bytes> bytes = std::move(at->second);
  files_.erase(at);
  std::shared_ptr<Bytes>& place = files_[to];
  if (place != nullptr) used_bytes_ -= std::ssize(*place);
  place = std::move(bytes);
  return OkStatus();
}

void SimulatedDisk::set_capacity_bytes(int64_t capacity_bytes) {
  std::lock_guard lock(mutex_);
  capacity_bytes_ = capacity_bytes;
}

int64_t SimulatedDisk::used_bytes() const {
  std::lock_guard lock(mutex_);
  return used_bytes_;
}

void SimulatedDisk::FailReadsAt(const std::string& path, int64_t offset) {
  std::lock_guard lock(mutex_);
  bad_bytes_[path] = offset;
}

void SimulatedDisk::Truncate(const std::string& path, int64_t size_bytes) {
  std::lock_guard lock(mutex_);
  const auto at = files_.find(path);
  CHECK(at != files_.end());
  CHECK_LE(size_bytes, static_cast<int64_t>(at->second->size()));
  used_bytes_ -= static_cast<int64_t>(at->second->size()) - size_bytes;
  at->second->resize(static_cast<size_t>(size_bytes));
}

Status SimulatedDisk::ReadAt(const std::string& path, const Bytes& bytes, int64_t offset,
                             std::span<uint8_t> out) const {
  std::lock_guard lock(mutex_);
  const int64_t end = offset + static_cast<int64_t>(out.size());
  const auto bad = bad_bytes_.find(path);
  if (bad != bad_bytes_.end() && offset <= bad->second && bad->second < end) {
    return Internal(path, ": cannot read: Input/output error");
  }
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (end > size) {
    return DataLoss(path, ": file ends at byte ", size, ", ", out.size(),
                    " bytes were expected at ", offset);
  }
  std::copy_n(bytes.begin() + offset, out.size(), out.begin());
  return OkStatus();
}

StatusOr<std::unique_ptr<ReadableFile>> SimulatedDisk::OpenRead(const std::string& path) {
  if (IsDirectory(path)) {
    return FailedPrecondition(path, ": is a directory, a file was expected");
  }
  std::lock_guard lock(mutex_);
  const auto at = files_.find(path);
  if (at == files_.end()) return NotFound(path, ": cannot open: No such file or directory");
  return std::make_unique<Reader>(*this, path, at->second);
}

StatusOr<std::unique_ptr<WritableFile>> SimulatedDisk::Create(const std::string& path) {
  return std::make_unique<Writer>(*this, path);
}

StatusOr<std::vector<std::string>> SimulatedDisk::List(const std::string& directory) {
  if (IsFile(directory)) return FailedPrecondition(directory, ": not a directory");
  if (!IsDirectory(directory)) return NotFound(directory, ": no such directory");
  const std::string prefix = directory + "/";
  std::set<std::string> names;
  const auto add = [&](const std::string& path) {
    if (path.starts_with(prefix)) {
      names.insert(path.substr(prefix.size(), path.find('/', prefix.size()) - prefix.size()));
    }
  };
  std::lock_guard lock(mutex_);
  for (const auto& [path, bytes] : files_) add(path);
  for (const std::string& path : directories_) add(path);
  return std::vector<std::string>(names.begin(), names.end());
}

bool SimulatedDisk::IsFile(const std::string& path) {
  std::lock_guard lock(mutex_);
  return files_.contains(path);
}

bool SimulatedDisk::IsDirectory(const std::string& path) {
  std::lock_guard lock(mutex_);
  const std::string prefix = path + "/";
  const auto inside = [&](const std::string& name) { return name.starts_with(prefix); };
  const auto file = files_.lower_bound(prefix);
  const auto directory = directories_.lower_bound(prefix);
  return directories_.contains(path) || (file != files_.end() && inside(file->first)) ||
         (directory != directories_.end() && inside(*directory));
}

Status SimulatedDisk::CreateDirectories(const std::string& path) {
  if (IsFile(path)) return Internal(path, ": cannot create directory: Not a directory");
  std::lock_guard lock(mutex_);
  directories_.insert(path);
  return OkStatus();
}

Status SimulatedDisk::Remove(const std::string& path) {
  std::lock_guard lock(mutex_);
  const auto at = files_.find(path);
  if (at == files_.end()) return NotFound(path, ": cannot remove: No such file or directory");
  used_bytes_ -= static_cast<int64_t>(at->second->size());
  files_.erase(at);
  return OkStatus();
}

}  // namespace deepinfer
