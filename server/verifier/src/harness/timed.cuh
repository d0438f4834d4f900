// ---- To be timed from outside -------------------------------------------------------------------------------------------
//
// Everything that is timed, and the talk with whoever times it, is compiled here, before the kernel's file: no macro and no
// overload of that changes it.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace stitch {

// The first contents of an array. They are kept on the device too where that takes little of its room: giving them back is quick then.
template <typename T> class First {
  Array<T>& array;
  size_t bytes;
  void* copy = nullptr;

 public:
  explicit First(Array<T>& array) : array(array), bytes(array.host.size() * sizeof(T)) {
    size_t unused = 0, total = 0;
    stitch::check(cudaMemGetInfo(&unused, &total), "cudaMemGetInfo");
    if (bytes > unused / 8) return;
    if (cudaMalloc(&copy, bytes) != cudaSuccess) {
      copy = nullptr;
      cudaGetLastError();
      return;
    }
    stitch::check(cudaMemcpy(copy, array.device, bytes, cudaMemcpyDeviceToDevice), "cudaMemcpy on the device");
  }

  void back() {
    if (copy) stitch::check(cudaMemcpy(array.device, copy, bytes, cudaMemcpyDeviceToDevice), "cudaMemcpy on the device");
    else array.fill();
  }
};

class Timed {
  static void fail(const char* what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
  }

  static int connection(const char* path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int to = socket(AF_UNIX, SOCK_STREAM, 0);
    if (to < 0 || connect(to, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("the socket to be timed over");
    return to;
  }

  // The next line, without its end. False where the other side has gone.
  static bool line(int from, char (&text)[4096]) {
    for (size_t length = 0; length + 1 < sizeof text;) {
      ssize_t got = recv(from, text + length, sizeof text - 1 - length, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      length += static_cast<size_t>(got);
      if (text[length - 1] == '\n') {
        text[length - 1] = 0;
        return true;
      }
    }
    return false;
  }

 public:
  // Obeys until `quit`. A command is `NUMBER WHAT [ARGUMENT]`; once it is done, its number is the answer. There is no clock here: the one who
  // gives the commands has it, and says with each `run` how many calls.
  template <typename Fill, typename Call, typename Save> static int obey(const char* path, Fill fill, Call call, Save save) {
    const int other = connection(path);
    static char text[4096];
    while (line(other, text)) {
      char* what = strchr(text, ' ');
      if (!what) return 2;
      *what++ = 0;
      const bool is_last = strcmp(what, "quit") == 0;
      if (strncmp(what, "run ", 4) == 0) {
        for (unsigned long long calls = strtoull(what + 4, nullptr, 10); calls; --calls) call();
        stitch::check(cudaGetLastError(), "the launch");
        stitch::check(cudaDeviceSynchronize(), "the kernel");
      } else if (strcmp(what, "fill") == 0) {
        fill();
        stitch::check(cudaDeviceSynchronize(), "the first contents");
      } else if (strncmp(what, "save ", 5) == 0) {
        save(what + 5);
      } else if (!is_last) {
        return 2;
      }
      const size_t length = strlen(text);
      text[length] = '\n';
      if (send(other, text, length + 1, MSG_NOSIGNAL) != static_cast<ssize_t>(length + 1)) fail("the answer");
      if (is_last) return 0;
    }
    return 0;
  }
};

}  // namespace stitch
