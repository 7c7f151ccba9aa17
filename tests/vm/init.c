/* The first process of the virtual machine (scripts/test-vm): makes a system out of the host's
 * files, read-only, with a disk of its own over them, and control groups of version 2 alone; runs
 * one command in it, says how that ended, turns the machine off. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define LINES_MAX 64
#define LINE_MAX_SIZE 1024

_Noreturn static void off(void)
{
	(void)fflush(NULL);
	(void)tcdrain(STDOUT_FILENO);
	sync();
	(void)reboot(RB_POWER_OFF);
	for (;;)
		(void)pause();
}

static void must(bool good, const char *what, const char *name)
{
	if (good)
		return;
	(void)printf("vm: %s %s: %s\n", what, name, strerror(errno));
	off();
}

static void mount_one(const char *type, const char *source, const char *target, unsigned long flags,
		      const char *options)
{
	(void)mkdir(target, 0755);
	must(mount(source, target, type, flags, options) == 0, "mounting", target);
}

/* The lines of a small file of the initramfs, NULL behind the last. */
static char **read_lines(const char *path)
{
	static char text[LINES_MAX][LINE_MAX_SIZE];
	static char *lines[LINES_MAX];
	FILE *file = fopen(path, "re");
	size_t count = 0;

	must(file != NULL, "opening", path);
	while (count < LINES_MAX - 1 && fgets(text[count], LINE_MAX_SIZE, file)) {
		text[count][strcspn(text[count], "\n")] = 0;
		lines[count] = text[count];
		count++;
	}
	(void)fclose(file);
	lines[count] = NULL;
	return lines;
}

static void load_modules(void)
{
	for (char **name = read_lines("/modules.list"); *name; name++) {
		int fd = open(*name, O_RDONLY | O_CLOEXEC);
		must(fd >= 0, "opening", *name);
		long r = syscall(SYS_finit_module, fd, "", 0);
		/* ENODEV: for a processor that this one is not. */
		must(r == 0 || errno == EEXIST || errno == ENODEV, "loading", *name);
		(void)close(fd);
	}
}

/* The second serial line carries what the tests say, byte for byte; the first is the kernel's. */
static void take_output(void)
{
	struct termios raw;
	int fd = open("/dev/ttyS1", O_RDWR | O_NOCTTY | O_CLOEXEC);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0 || null < 0)
		off();
	if (tcgetattr(fd, &raw) == 0) {
		cfmakeraw(&raw);
		(void)tcsetattr(fd, TCSANOW, &raw);
	}
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(fd, STDOUT_FILENO);
	(void)dup2(fd, STDERR_FILENO);
}

static void make_root(void)
{
	mount_one("9p", "host", "/host", MS_RDONLY,
		  "trans=virtio,version=9p2000.L,cache=loose,msize=524288");
	mount_one("ext4", "/dev/vda", "/disk", 0, "");
	(void)mkdir("/disk/upper", 0755);
	(void)mkdir("/disk/work", 0755);
	static const char *const open_to_all[] = {"/disk/tmp", "/disk/var-tmp"};
	for (int i = 0; i < 2; i++) {
		(void)mkdir(open_to_all[i], 0777);
		must(chmod(open_to_all[i], 01777) == 0, "mode of", open_to_all[i]);
	}
	mount_one("overlay", "root", "/root", 0,
		  "lowerdir=/host,upperdir=/disk/upper,workdir=/disk/work");
	must(mount("/proc", "/root/proc", NULL, MS_MOVE, NULL) == 0, "moving", "/proc");
	must(mount("/sys", "/root/sys", NULL, MS_MOVE, NULL) == 0, "moving", "/sys");
	must(mount("/dev", "/root/dev", NULL, MS_MOVE, NULL) == 0, "moving", "/dev");
	must(mount("/disk/tmp", "/root/tmp", NULL, MS_BIND, NULL) == 0, "binding", "/tmp");
	must(mount("/disk/var-tmp", "/root/var/tmp", NULL, MS_BIND, NULL) == 0, "binding",
	     "/var/tmp");
	mount_one("tmpfs", "run", "/root/run", MS_NOSUID | MS_NODEV, "mode=755");
	mount_one("devpts", "devpts", "/root/dev/pts", MS_NOSUID | MS_NOEXEC,
		  "gid=5,mode=620,ptmxmode=666");
	mount_one("tmpfs", "shm", "/root/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
	/* As the service manager of a usual host does it. */
	mount_one("cgroup2", "cgroup2", "/root/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "nsdelegate,memory_recursiveprot");
}

/* A build below the host's /tmp, which is covered by the machine's own, is shown where it was. */
static void show(const char *path)
{
	char from[LINE_MAX_SIZE + 8], to[LINE_MAX_SIZE + 8];

	(void)snprintf(from, sizeof from, "/host%s", path);
	(void)snprintf(to, sizeof to, "/root%s", path);
	if (access(to, F_OK) == 0)
		return;
	for (char *slash = to + 6; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		(void)mkdir(to, 0755);
		*slash = '/';
	}
	(void)mkdir(to, 0755);
	must(mount(from, to, NULL, MS_BIND, NULL) == 0, "binding", path);
}

/* From the initramfs one cannot pivot: the new root is put over it. */
static void enter_root(void)
{
	must(chdir("/root") == 0, "entering", "/root");
	must(mount(".", "/", NULL, MS_MOVE, NULL) == 0, "moving", "/root");
	must(chroot(".") == 0, "changing to", "/root");
	must(chdir("/") == 0, "entering", "/");
	(void)symlink("/proc/self/fd", "/dev/fd");
	(void)symlink("/proc/self/fd/0", "/dev/stdin");
	(void)symlink("/proc/self/fd/1", "/dev/stdout");
	(void)symlink("/proc/self/fd/2", "/dev/stderr");
}

static void raise_loopback(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	must(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0, "raising", "lo");
	(void)close(fd);
}

static int run(char **command)
{
	int status;
	pid_t pid = fork();

	must(pid >= 0, "forking for", command[0]);
	if (pid == 0) {
		(void)setsid();
		(void)execv(command[0], command);
		(void)printf("vm: %s: %s\n", command[0], strerror(errno));
		(void)fflush(NULL);
		_exit(127);
	}
	for (pid_t gone; (gone = wait(&status)) != pid;) {
		if (gone < 0 && errno != EINTR)
			return 126;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(void)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	mount_one("devtmpfs", "dev", "/dev", MS_NOSUID, "mode=755");
	mount_one("proc", "proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mount_one("sysfs", "sys", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	take_output();
	load_modules();
	make_root();
	char **command = read_lines("/command");
	for (char **word = command + 1; *word; word++) {
		if (**word == '/')
			show(*word);
	}
	enter_root();
	raise_loopback();
	(void)sethostname("coop-vm", 7);
	(void)setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	(void)setenv("HOME", "/root", 1);
	int status = run(command);
	(void)printf("vm: ended with %d\n", status);
	off();
}
