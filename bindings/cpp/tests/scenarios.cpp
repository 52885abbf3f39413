// Plays the shared scenarios through this binding and prints what happened: see tests/scenarios/README.md of the
// library.
//
//     scenarios FILE... </dev/null

#include "scenarios/case.hpp"
#include "scenarios/text.hpp"

#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>

namespace {

void play(std::istream& file)
{
    std::optional<scenarios::Case> current;
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line[0] == '#' || line.compare(0, 2, "= ") == 0)
            continue;
        if (line.compare(0, 5, "case ") == 0) {
            current.reset();
            current.emplace();
            std::cout << line << '\n';
            continue;
        }
        try {
            if (!current)
                throw scenarios::Unknown();
            current->play(line);
        } catch (const scenarios::Unknown&) {
            throw std::invalid_argument("unknown line: " + line);
        }
    }
}

} // namespace

int main(int argc, char** argv)
{
    try {
        for (int i = 1; i < argc; ++i) {
            std::ifstream file(argv[i]);
            if (!file)
                throw std::runtime_error("can't open " + std::string(argv[i]));
            play(file);
        }
    } catch (const std::exception& error) {
        std::cout << std::flush;
        std::cerr << "scenarios: " << error.what() << '\n';
        return 2;
    }
}
