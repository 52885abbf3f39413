// Which library this is.
#include "check.hpp"

#include <string>

TEST("the library that was loaded is the one of the header")
{
    EQUAL(std::string(dsh::version()), std::to_string(DSH_VERSION_MAJOR) + '.' + std::to_string(DSH_VERSION_MINOR) +
                                           '.' + std::to_string(DSH_VERSION_PATCH));
    EQUAL(dsh::abi_version(), DSH_ABI_VERSION);
}

TEST("features can be asked for, also those that nobody knows")
{
    EQUAL(dsh::feature(static_cast<dsh::Feature>(4711)), 0U);
    const dsh::Executor executor;
    if (dsh::feature(dsh::Feature::vfork) != 0)
        CHECK(executor.stats().spawn_path == dsh::SpawnPath::vfork);
    executor.run("true");
    EQUAL(executor.stats().guard_pid > 0, dsh::feature(dsh::Feature::guard) != 0);
}
