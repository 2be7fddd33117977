/** User and group of a command in the sandbox. Neither has any privileges there. */
export const sandboxUser = { id: 1000, name: "sandbox", home: "/tmp/home" } as const;

/** System folders that programs need, if they exist. Home folders and `/etc` are not included. */
export const systemFolders = [
  "/usr",
  "/bin",
  "/sbin",
  "/lib",
  "/lib32",
  "/lib64",
  "/opt",
  "/nix",
  "/run/current-system",
] as const;

/** Files of `/etc` that programs need to start. */
const always = [
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/alternatives",
  "/etc/localtime",
  "/etc/timezone",
  "/etc/os-release",
  "/etc/ssl/openssl.cnf",
] as const;

/** Files of `/etc` that programs need to reach the network. None contains a private key. */
const forNetwork = [
  "/etc/resolv.conf",
  "/etc/hosts",
  "/etc/host.conf",
  "/etc/gai.conf",
  "/etc/services",
  "/etc/protocols",
  "/etc/ssl/certs",
  "/etc/ssl/cert.pem",
  "/etc/ca-certificates",
  "/etc/pki/tls/certs",
  "/etc/pki/ca-trust/extracted",
  "/etc/crypto-policies",
] as const;

/** Returns the files of `/etc` that a command may read. Files with secrets, such as `/etc/shadow`, are never among them. */
export function readableSettings(network: boolean): readonly string[] {
  return network ? [...always, ...forNetwork] : always;
}

/**
 * Returns files of `/etc` with generated content, so that a command learns nothing about the users of this machine.
 */
export function generatedSettings(network: boolean): Readonly<Record<string, string>> {
  const { id, name, home } = sandboxUser;
  return {
    "/etc/passwd": `${name}:x:${id}:${id}:${name}:${home}:/bin/sh\n`,
    "/etc/group": `${name}:x:${id}:\n`,
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    ...(!network && { "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n" }),
  };
}
