import { hostname } from "node:os";
import type { SandboxLimits } from "../../src/capabilities/tools/index.ts";

/**
 * One attack: its name and a shell command that calls `breach` if the attack has succeeded. `$OUTSIDE` is the folder
 * outside of the workspace, `$PARENT` the id of the process that runs the tool, and `$PORT` a port of this machine. A
 * successful attack must not harm this machine: it only writes values that already exist, and deletes what it creates.
 */
type Attack = readonly [name: string, command: string];

export const secrets: readonly Attack[] = [
  ["/etc/shadow", "cat /etc/shadow && breach"],
  ["/etc/gshadow", "cat /etc/gshadow && breach"],
  ["/etc/sudoers", "cat /etc/sudoers && breach"],
  ["the users of this machine", "grep -v '^sandbox:' /etc/passwd && breach"],
  ["the keys of this machine", "ls /etc/ssh /etc/ssl/private && breach"],
  ["root's home folder", "ls -a /root/. && breach"],
  ["other home folders", "ls /home && breach"],
  ["a file outside by its absolute path", 'cat "$OUTSIDE/secret" && breach'],
  ["a file outside by a relative path", "cat ../outside/secret && breach"],
  ["a file outside through a link", "cat leak && breach"],
  ["a file outside through a linked folder", "cat out/secret && breach"],
  ["a file outside through a new link", 'ln -s "$OUTSIDE/secret" new; cat new && breach'],
  ["a file outside through a hard link", 'ln "$OUTSIDE/secret" new && breach'],
  ["a file outside through the root of process 1", 'cat "/proc/1/root$OUTSIDE/secret" && breach'],
  ["a file outside through the working folder of process 1", "cat /proc/1/cwd/../outside/secret && breach"],
  [
    "a file outside through an inherited descriptor",
    'for fd in /proc/self/fd/* /proc/1/fd/*; do cat "$fd/../outside/secret" && breach; done',
  ],
  [
    "a writable descriptor of a folder",
    'for fd in /proc/self/fd/* /proc/1/fd/*; do [ -d "$fd/.git" ] && breach; done',
  ],
  ["the environment of the command", "env | grep REEVE_ATTACK && breach"],
  ["the environment of process 1", "tr '\\0' '\\n' < /proc/1/environ | grep . && breach"],
  [
    "the environment of every process",
    "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep REEVE_ATTACK && breach",
  ],
  ["the environment of the parent", 'cat "/proc/$PARENT/environ" && breach'],
  ["the memory of the parent", 'head -c 1 "/proc/$PARENT/mem" && breach'],
  ["the list of processes of this machine", '[ "$(ls -d /proc/[0-9]* | wc -l)" -gt 8 ] && breach'],
  ["the arguments of bubblewrap", "tr '\\0' '\\n' < /proc/1/cmdline | grep -e --se[t]env && breach"],
  ["the memory of the kernel", "head -c 1 /proc/kcore && breach"],
  ["the messages of the kernel", "head -c 1 /proc/kmsg /dev/kmsg && breach"],
  ["the disks of this machine", "ls /dev/sd* /dev/vd* /dev/nvme* /dev/mem && breach"],
  ["the sockets of services", "ls /run/docker.sock /var/run/docker.sock /run/dbus && breach"],
  ["the logs of this machine", "ls /var/log && breach"],
  ["the settings of the kernel's devices", "ls /sys/class && breach"],
  [
    "the identity of this machine",
    `cat /etc/machine-id /etc/hostname && breach; [ "$(uname -n)" = '${hostname()}' ] && breach`,
  ],
];

export const writes: readonly Attack[] = [
  ["/usr", "touch /usr/planted && rm /usr/planted && breach"],
  ["/usr/local/bin", "touch /usr/local/bin/planted && rm /usr/local/bin/planted && breach"],
  ["/bin", "touch /bin/planted && rm /bin/planted && breach"],
  ["/lib", "touch /lib/planted && rm /lib/planted && breach"],
  ["/opt", "touch /opt/planted && rm /opt/planted && breach"],
  ["/etc", "touch /etc/planted && rm /etc/planted && breach"],
  ["/etc/passwd", "printf '' >> /etc/passwd && breach"],
  ["/", "touch /planted && rm /planted && breach"],
  ["/dev", "touch /dev/planted && rm /dev/planted && breach"],
  [
    "/proc/sys/kernel/core_pattern",
    "v=$(cat /proc/sys/kernel/core_pattern) && echo $v > /proc/sys/kernel/core_pattern && breach",
  ],
  [
    "/proc/sys/kernel/printk",
    "v=$(cat /proc/sys/kernel/printk) && echo $v > /proc/sys/kernel/printk && breach",
  ],
  ["/proc/sysrq-trigger", "echo h > /proc/sysrq-trigger && breach"],
  ["/proc/self/uid_map", "echo '0 0 1' > /proc/self/uid_map && breach"],
  ["/proc/self/oom_score_adj", "echo -1000 > /proc/self/oom_score_adj && breach"],
  ["a folder outside", 'touch "$OUTSIDE/planted" && breach'],
  ["a folder outside through a link", "touch out/planted && breach"],
  ["a file outside through a dangling link", "echo x > dangling && breach"],
];

export const privileges: readonly Attack[] = [
  ["a remount of /usr", "mount -o remount,rw /usr && breach"],
  ["a remount of a bound folder", "mount -o remount,rw,bind /usr /usr && breach"],
  ["a remount of a control file", "mount -o remount,rw,bind .git/config && breach"],
  ["an unmount of a control file", "umount .git/config && breach; umount -l .git/hooks && breach"],
  ["a mount of a new file system", "mount -t tmpfs x /tmp && breach"],
  ["a mount over a control folder", "mount --bind sub .git/hooks && breach"],
  ["a mount of /proc", "mount -t proc proc /tmp && breach"],
  ["a new root", "chroot . && breach; chroot / true && breach"],
  ["a pivot of the root", "mkdir p; pivot_root . p && breach"],
  ["a device node for memory", "mknod mem c 1 1 && breach"],
  ["a device node for a disk", "mknod disk b 8 0 && breach; mknod /tmp/disk b 254 0 && breach"],
  ["a user namespace", "unshare -U true && breach"],
  ["a user namespace as root", "unshare -Ur true && breach"],
  ["a mount namespace", "unshare -m true && breach"],
  ["a mount namespace in a user namespace", "unshare -Urm mount -o remount,rw /usr && breach"],
  ["a network namespace", "unshare -Urn true && breach"],
  ["a nested bubblewrap", "bwrap --unshare-user --ro-bind / / true && breach"],
  ["the namespaces of process 1", "nsenter -t 1 -a true && breach"],
  ["the namespaces of the parent", 'nsenter -t "$PARENT" -m true && breach'],
  ["user 0", '[ "$(id -u)" = 0 ] && breach; setpriv --reuid 0 true && breach'],
  ["another group", "setpriv --regid 0 --clear-groups true && breach"],
  ["su", "su -c true && breach; su root -c true && breach"],
  ["a capability", "grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' /proc/self/status && breach"],
  ["new privileges by a program", "grep -q 'NoNewPrivs:.*0' /proc/self/status && breach"],
  ["a set-user-id program", "cp /bin/sh s && chmod u+s s && ./s -p -c '[ $(id -u) = 0 ]' && breach"],
  ["a file of another user", "touch f; chown 0 f && breach; chown 12345 f && breach"],
  ["file capabilities", "cp /bin/sh s; setcap cap_sys_admin+ep s && breach"],
  ["the host name", "hostname $(hostname) && breach; hostname > /proc/sys/kernel/hostname && breach"],
  ["the clock", "date -s now && breach"],
  ["a kernel module", "insmod x.ko && breach; modprobe dummy && breach"],
  ["a raw socket", "perl -MSocket -e 'socket(S, AF_INET, SOCK_RAW, 1) or exit 1' && breach"],
  ["a network interface", "ip link add x type dummy && breach; ip link set lo up && breach"],
  ["a higher priority", "nice -n -5 true 2>&1 | grep -q 'cannot set' || breach"],
  ["the parent process", 'kill -9 "$PARENT" && breach'],
  ["the parent's process group", 'kill -9 "-$PARENT" && breach'],
  ["every process", "[ $(cat /proc/1/comm) = bwrap ] && kill -9 -1; true"],
  [
    "the tracing of the parent",
    'strace -p "$PARENT" -o t 2>&1 | grep attached && breach; gdb -p "$PARENT" -batch 2>&1 | grep "^\\[New LWP" && breach',
  ],
  [
    "the keyboard of the terminal",
    'perl -e \'open(T, "+</dev/tty") or exit 1; ioctl(T, 0x5412, "x") or exit 1\' && breach',
  ],
];

export const networks: readonly Attack[] = [
  ["a port of this machine", "exec 3<>/dev/tcp/127.0.0.1/$PORT && breach"],
  ["a port of this machine by name", "exec 3<>/dev/tcp/localhost/$PORT && breach"],
  ["a port of this machine over IPv6", "exec 3<>/dev/tcp/::1/$PORT && breach"],
  [
    "an abstract socket of this machine",
    'perl -MSocket -e \'socket(S, PF_UNIX, SOCK_STREAM, 0); connect(S, pack("Sa*", AF_UNIX, "\\0reeve-attack-$ENV{PORT}")) or exit 1\' && breach',
  ],
  ["a metadata service", "timeout 2 bash -c 'exec 3<>/dev/tcp/169.254.169.254/80' && breach"],
  ["a public address", "timeout 2 bash -c 'exec 3<>/dev/tcp/1.1.1.1/53' && breach"],
  ["a name server", "getent hosts example.com && breach"],
  ["an interface other than lo", "grep -vE 'Inter|face|lo:' /proc/net/dev && breach"],
];

/** Attacks on control files. The guarded files must stay unchanged, whatever the command says. */
export const controls: readonly Attack[] = [
  ["an appended git configuration", "echo '[core]' >> .git/config && breach"],
  ["git config", "git config core.fsmonitor 'touch /tmp/x' && breach"],
  ["a git configuration replaced in place", "sed -i s/false/true/ .git/config && breach"],
  ["a git configuration replaced by mv", "echo x > n; mv -f n .git/config && breach"],
  ["a git configuration replaced by a link", "ln -sf ../file .git/config && breach"],
  ["a git configuration replaced by a hard link", "ln -f file .git/config && breach"],
  ["a truncated git configuration", "truncate -s 0 .git/config && breach"],
  ["a deleted git configuration", "rm -f .git/config && breach"],
  ["a git configuration with another mode", "chmod 777 .git/config && breach"],
  ["a git configuration through a linked folder", "echo x >> g/config && breach"],
  ["a git configuration through a link to it", "echo x >> link-to-config && breach"],
  ["a git configuration through /proc", "echo x >> /proc/self/cwd/.git/config && breach"],
  ["a git configuration through the root", 'echo x >> "/proc/1/root$PWD/.git/config" && breach'],
  ["a git configuration through a new hard link", "ln .git/config c && echo x >> c && breach"],
  ["a git configuration through a descriptor", "exec 3<.git/config; echo x >> /proc/self/fd/3 && breach"],
  ["a renamed git folder", "mv .git moved && breach"],
  ["an exchanged git folder", "mkdir n; mv --exchange .git n && breach; mv -T .git n && breach"],
  ["a deleted git folder", "rm -rf .git; mkdir -p .git && echo x > .git/config && breach"],
  ["a new initialisation of the repository", "git init --template= . && git config a.b c && breach"],
  ["a new hook", "echo x > .git/hooks/pre-commit && breach"],
  ["an executable sample hook", "chmod +x .git/hooks/pre-commit.sample && breach"],
  ["a renamed folder of hooks", "mv .git/hooks .git/old && breach"],
  ["a deleted folder of hooks", "rm -rf .git/hooks; mkdir .git/hooks && breach"],
  ["a hook through a linked folder", "echo x > sub/hooks/pre-commit && breach"],
  ["a hook in the folder that core.hooksPath names", "echo x > tools/hooks/pre-push && breach"],
  ["a new hook in the folder that core.hooksPath names", "echo x > tools/hooks/pre-commit && breach"],
  ["a renamed parent of that folder", "mv tools t && mkdir -p tools/hooks && breach"],
  ["a file that the git configuration includes", "echo x >> tools/git-settings && breach"],
  ["a nested repository's configuration", "echo x >> sub/.git/config && breach"],
  ["a nested repository's hook", "echo x >> sub/.git/hooks/update && breach"],
  ["a renamed nested repository", "mv sub sub2 && mkdir -p sub/.git && echo x > sub/.git/config && breach"],
  ["a submodule's configuration", "echo x >> .git/modules/m/config && breach"],
  ["a submodule's hook", "echo x > .git/modules/m/hooks/pre-commit && breach"],
  ["a renamed submodule", "mv .git/modules/m .git/modules/n && breach"],
  ["a worktree's redirection", "echo x > .git/worktrees/w/commondir && breach"],
  ["a worktree's .git file", "echo 'gitdir: /tmp/evil' > wt/.git && breach"],
  ["a replaced .git file of a worktree", "rm -f wt/.git && breach; mv wt wt2 && breach"],
  ["a bare repository's configuration", "echo x >> bare.git/config && breach"],
  ["a bare repository's hook", "echo x > bare.git/hooks/post-update && breach"],
  ["a renamed bare repository", "mv bare.git b && breach"],
  ["an editor's tasks", "echo x > .vscode/tasks.json && breach"],
  ["new editor settings", "echo x > .vscode/settings.json && breach"],
  ["a replaced folder of an editor", "mv .vscode v && breach; rm -rf .vscode; mkdir .vscode && breach"],
  ["another editor's settings", "echo x > .idea/workspace.xml && breach"],
  ["the store of runs", "echo x > .reeve/reeve.db && breach"],
  ["a shell start-up file", "echo x >> .bashrc && breach"],
  ["a login file", "echo x >> .profile && breach"],
  ["an environment file", "echo x >> .envrc && breach"],
  ["an environment file by its other name", "echo x >> alias-of-envrc && breach"],
  ["an environment file of a folder", "echo x >> sub/.envrc && breach"],
  ["the target of a linked start-up file", "echo x >> dotfiles/aliases && breach"],
  ["a replaced link of a start-up file", "rm .bash_aliases && echo x > .bash_aliases"],
  ["a deleted link of a start-up file", "rm .bash_aliases"],
  ["a redirected git folder", "echo ../evil > .git/commondir"],
  ["a redirected git folder by a link", "ln -s ../evil .git/commondir"],
  ["a worktree configuration", "echo x > .git/config.worktree"],
  [
    "a redirection that a background process restores",
    "(while :; do echo ../evil > .git/commondir; done) > /dev/null 2>&1 & sleep 0.1",
  ],
];

/** Names that must not exist in the world after any attack, relative to the workspace. */
export const neverCreated = [
  ".git/commondir",
  ".git/config.worktree",
  "sub/.git/commondir",
  "bare.git/commondir",
] as const;

/** Limits that are quick to reach. */
export const small: SandboxLimits = {
  processes: 64,
  memoryBytes: 256 * 1024 * 1024,
  fileBytes: 1024 * 1024,
  tmpBytes: 1024 * 1024,
  openFiles: 32,
  cpuSeconds: 1,
};

export const floods: readonly Attack[] = [
  [
    // Only builtins, because no further process can start. The bomb would use all processors until the call times out. It
    // starts in a process of its own, because a shell that cannot fork tries again for up to 31 s. The shell waits without
    // using the processor, so that no other limit ends it before it counts.
    "a fork bomb",
    "mkfifo quiet; exec 3<>quiet; :(){ :|:& };(:)& read -t 2 -u 3; set -- /proc/[0-9]*; [ $# -gt 200 ] && breach",
  ],
  [
    "300 background processes",
    "for i in $(seq 300); do sleep 5 & done; [ $(jobs -r | wc -l) -gt 200 ] && breach",
  ],
  ["a file of 64 MiB", "head -c 64M /dev/zero > big; [ $(stat -c %s big) -gt 2000000 ] && breach"],
  ["a sparse file of 1 TiB", "truncate -s 1T big && breach"],
  ["a full /tmp", "head -c 64M /dev/zero > /tmp/big; [ $(stat -c %s /tmp/big) -gt 2000000 ] && breach"],
  [
    "many files in /tmp",
    "for i in $(seq 64); do head -c 512K /dev/zero > /tmp/$i; done; [ $(cat /tmp/[0-9]* | wc -c) -gt 2000000 ] && breach",
  ],
  [
    "a full /dev/shm",
    "head -c 64M /dev/zero > /dev/shm/big; [ $(stat -c %s /dev/shm/big) -gt 2000000 ] && breach",
  ],
  ["2 GiB of memory", "perl -e '$x = \"x\" x 2_000_000_000; print length $x' && breach"],
  ["1,000 open files", 'perl -e \'for (1..1000) { open($f[$_], "<", "/dev/null") or exit 1 }\' && breach'],
  ["endless computation", "perl -e 'alarm 30; 1 while 1' ; [ $? = 142 ] && breach"],
  ["a core dump", "ulimit -c unlimited && breach; kill -SEGV $$; ls core* && breach"],
  [
    "higher limits",
    "ulimit -n 100000 && breach; ulimit -f unlimited && breach; ulimit -t unlimited && breach",
  ],
];
