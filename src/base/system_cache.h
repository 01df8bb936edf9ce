// base/system_cache.h: what the system keeps in memory of the files of its own disk.
#pragma once

#include <string>

namespace deepinfer {

// Asks the system to forget what it holds of a file, so that the next read is the disk's. For
// measurements; a wish, without effect on what is mapped somewhere. Defined in disk.cc.
void DropFromSystemCache(const std::string& path);

}  // namespace deepinfer
