// The folder of a case.
#ifndef SCENARIOS_FOLDER_HPP
#define SCENARIOS_FOLDER_HPP

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace scenarios {

// A fresh, empty folder, which goes with this object.
class Folder {
public:
    Folder()
    {
        std::string name = (std::filesystem::temp_directory_path() / "dsh-scenario-XXXXXX").string();
        if (mkdtemp(name.data()) == nullptr)
            throw std::runtime_error("no temporary directory");
        path_ = name;
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::string& path() const { return path_; }

private:
    std::string path_;
};

} // namespace scenarios

#endif
