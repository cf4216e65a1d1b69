// Records in files, as Python writes and reads them: 8 bytes a field, in the order of the fields, no header.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

// Returns all records of a file.
template <typename Record>
std::vector<Record> read_records(const std::string &name) {
    std::ifstream file(name, std::ios::binary | std::ios::ate);
    if (!file) {
        std::cerr << name << " cannot be read" << std::endl;
        std::exit(1);
    }
    std::vector<Record> records(static_cast<size_t>(file.tellg()) / sizeof(Record));
    file.seekg(0);
    file.read(reinterpret_cast<char *>(records.data()), static_cast<std::streamsize>(records.size() * sizeof(Record)));
    return records;
}

// Writes records to a file, through a buffer.
class Writer {
public:
    explicit Writer(const std::string &name) : buffer_(1 << 20) {
        file_.rdbuf()->pubsetbuf(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
        file_.open(name, std::ios::binary | std::ios::trunc);
    }

    template <typename Record>
    void write(const Record &record) {
        file_.write(reinterpret_cast<const char *>(&record), sizeof(Record));
    }

    // Ends the program with an error if not everything is in the file.
    void close() {
        file_.close();
        if (!file_) {
            std::cerr << "the answers could not be written" << std::endl;
            std::exit(1);
        }
    }

private:
    std::vector<char> buffer_;
    std::ofstream file_;
};
