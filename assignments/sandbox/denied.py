"""What a student's code is denied, and by what: the sandbox's table, for Linux 5.13 and newer.

A row holds on the oldest kernel that is accepted, whose Landlock is version 1: that forbids reading
and writing files beneath other folders, and making, deleting and executing them. It forbids neither
emptying them (version 3) nor TCP (4), calls to devices (5), signals and abstract sockets (6), and
no version forbids changing modes, owners, times and attributes. All these seccomp denies, on every
kernel. Where a newer Landlock denies them, too, there are two walls.

seccomp's filter allows what it names. `calls` are the best known of those that it therefore denies;
a row without them is denied by an argument of a call that is allowed, or by Landlock or a limit.
sandbox/test_denied.py in the tests tries every row, with this kernel's Landlock and with version 1.
"""

from typing import NamedTuple


class Denied(NamedTuple):
    what: str
    by: str
    calls: str = ""


LANDLOCK = "Landlock"
SECCOMP = "seccomp"
LIMIT = "limit"  # of the process, which the kernel keeps: kernel.py
WATCH = "watch"  # of the grader, which ends a kernel that is over it: process.py

DENIED = [
    # files
    Denied("read a file", LANDLOCK),
    Denied("list a folder", LANDLOCK),
    Denied("write to a file", LANDLOCK),
    Denied("empty a file that is opened to be written", LANDLOCK),
    Denied("empty a file that is opened to be read", SECCOMP, "openat2"),
    Denied("empty a file that is opened in the fourth mode", SECCOMP),
    Denied("empty a file by its path", SECCOMP, "truncate"),
    Denied("make a file, folder, link or socket", LANDLOCK, "mknod mknodat"),
    Denied("make a file without a name", SECCOMP, "memfd_create memfd_secret"),
    Denied(
        "delete or rename, in its own folder too",
        LANDLOCK,
        "unlink unlinkat rmdir rename renameat renameat2",
    ),
    Denied(
        "change a mode, an owner, a time, an attribute",
        SECCOMP,
        "chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat "
        "utimensat setxattr lsetxattr fsetxattr setxattrat removexattr lremovexattr fremovexattr",
    ),
    Denied("change a file's flags, make a subvolume, call a device", SECCOMP),  # ioctl
    Denied("reach a file by a handle", SECCOMP, "name_to_handle_at open_by_handle_at"),
    Denied("lock a file, or learn of its use", SECCOMP, "flock inotify_init inotify_init1 "
           "inotify_add_watch fanotify_init fanotify_mark"),
    Denied("write into the page of a file by a pipe", SECCOMP, "splice tee vmsplice sendfile"),
    Denied("change what is mounted", SECCOMP, "mount umount2 pivot_root chroot open_tree "
           "move_mount fsopen fsconfig fsmount fspick mount_setattr"),
    # processes
    Denied("start a process", SECCOMP, "fork vfork clone3"),
    Denied("execute a program", SECCOMP, "execve execveat"),
    Denied("enter a namespace", SECCOMP, "unshare setns"),
    Denied("read or change another process", SECCOMP, "ptrace process_vm_readv process_vm_writev "
           "process_madvise process_mrelease pidfd_open pidfd_getfd kcmp move_pages migrate_pages "
           "get_robust_list"),
    Denied("signal another process", SECCOMP, "tkill rt_sigqueueinfo rt_tgsigqueueinfo "
           "pidfd_send_signal"),
    Denied("signal another process as the owner of a file", SECCOMP),  # fcntl
    Denied("change another's limits and priority", SECCOMP, "setpriority ioprio_set "
           "sched_setparam sched_setscheduler sched_setaffinity sched_setattr"),
    Denied("become another user, or its group's leader", SECCOMP, "setuid setgid setreuid setregid "
           "setresuid setresgid setfsuid setfsgid setgroups capset setsid setpgid"),
    # other programs
    Denied("use the network", SECCOMP, "connect"),
    Denied("send a datagram to a program", SECCOMP),
    Denied("connect to a program", SECCOMP, "connect"),
    Denied("use System V's memory, semaphores and queues", SECCOMP, "shmget shmat shmctl shmdt "
           "semget semop semctl semtimedop msgget msgsnd msgrcv msgctl"),
    Denied("use POSIX queues", SECCOMP, "mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify "
           "mq_getsetattr"),
    Denied("use the user's keys", SECCOMP, "add_key request_key keyctl"),
    # the kernel
    Denied("give it work that no filter sees", SECCOMP, "io_uring_setup io_uring_enter "
           "io_uring_register io_setup io_submit"),
    Denied("give it programs, or handle its faults", SECCOMP, "bpf seccomp perf_event_open "
           "userfaultfd"),
    Denied("change it", SECCOMP, "init_module finit_module delete_module kexec_load reboot "
           "personality modify_ldt ioperm iopl syslog"),
    Denied("change its clock", SECCOMP, "settimeofday clock_settime adjtimex clock_adjtime"),
    Denied("change the machine's name, quotas, accounts", SECCOMP, "sethostname setdomainname "
           "quotactl quotactl_fd acct swapon swapoff vhangup sync syncfs"),
    Denied("call it by another interface", SECCOMP),  # x32 and 32 bits
    # a share of the machine
    Denied("take the processor without end", LIMIT),  # RLIMIT_CPU, and run.py's seconds
    Denied("take more memory", LIMIT),  # RLIMIT_AS
    Denied("write a large file", LIMIT),  # RLIMIT_FSIZE
    Denied("open many files", LIMIT),  # RLIMIT_NOFILE
    Denied("take space on the disk without writing, in a log too", SECCOMP, "fallocate"),
    Denied("hold memory in the buffers of sockets", SECCOMP, "setsockopt"),
    Denied("fill the disk with small files", WATCH),
    Denied("hide what fills the disk", WATCH),
    Denied("start threads without end", WATCH),
]  # fmt: skip
