/* A folder with delayed reads: every read of a file takes MICROSECONDS longer, as a query to firmware does.
 *
 * slow_files FOLDER MICROSECONDS MOUNTPOINT [fuse options]. The kernel caches names and attributes, and opening has no
 * delay, so two readers differ only in how many files they read, and how many at once.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int root;
static long delay_nanoseconds;

static const char *below(const char *path) { return path[1] ? path + 1 : "."; }

static void *begin(struct fuse_conn_info *connection, struct fuse_config *config)
{
    (void)connection;
    config->direct_io = 1;
    config->entry_timeout = config->attr_timeout = config->negative_timeout = 3600;
    return NULL;
}

static int get_attributes(const char *path, struct stat *found, struct fuse_file_info *file)
{
    (void)file;
    return fstatat(root, below(path), found, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
}

static int read_link(const char *path, char *target, size_t size)
{
    ssize_t length = readlinkat(root, below(path), target, size - 1);
    if (length < 0)
        return -errno;
    target[length] = 0;
    return 0;
}

static int list_folder(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *file,
                       enum fuse_readdir_flags flags)
{
    (void)offset, (void)file, (void)flags;
    int descriptor = openat(root, below(path), O_RDONLY | O_DIRECTORY);
    DIR *folder = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (!folder)
        return -errno;
    for (struct dirent *entry; (entry = readdir(folder));)
        fill(buffer, entry->d_name, NULL, 0, 0);
    closedir(folder);
    return 0;
}

static int open_file(const char *path, struct fuse_file_info *file)
{
    int descriptor = openat(root, below(path), O_RDONLY);
    if (descriptor < 0)
        return -errno;
    file->fh = descriptor;
    return 0;
}

static int read_file(const char *path, char *buffer, size_t size, off_t offset, struct fuse_file_info *file)
{
    (void)path;
    ssize_t length = pread(file->fh, buffer, size, offset);
    /* A read at the end of the file does not query firmware. */
    if (length > 0) {
        struct timespec rest = {0, delay_nanoseconds};
        nanosleep(&rest, NULL);
    }
    return length < 0 ? -errno : length;
}

static int release_file(const char *path, struct fuse_file_info *file)
{
    (void)path;
    return close(file->fh) ? -errno : 0;
}

static const struct fuse_operations operations = {
    .init = begin,
    .getattr = get_attributes,
    .readlink = read_link,
    .readdir = list_folder,
    .open = open_file,
    .read = read_file,
    .release = release_file,
};

int main(int count, char **arguments)
{
    if (count < 4 || (root = open(arguments[1], O_RDONLY | O_DIRECTORY)) < 0) {
        fprintf(stderr, "slow_files FOLDER MICROSECONDS MOUNTPOINT [fuse options]\n");
        return 2;
    }
    delay_nanoseconds = atol(arguments[2]) * 1000;
    arguments[2] = arguments[0];
    return fuse_main(count - 2, arguments + 2, &operations, NULL);
}
