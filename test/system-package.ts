import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Installs a package of the system as root, or with sudo if it asks for no password. Returns why that failed. */
export async function installSystemPackage(packageName: string): Promise<string | undefined> {
  const [name = "", ...prefix] = process.getuid?.() === 0 ? ["apt-get"] : ["sudo", "-n", "apt-get"];
  // Several projects may install at the same time, so each waits for the lock.
  const settings = ["Acquire::Retries=0", "Acquire::http::Timeout=15", "DPkg::Lock::Timeout=240"].flatMap(
    (each) => ["-o", each],
  );
  const apt = (...args: readonly string[]) =>
    promisify(execFile)(name, [...prefix, ...settings, ...args], {
      timeout: 300_000,
      maxBuffer: 64 * 1024 * 1024,
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    });
  try {
    // The package lists of an image are often missing or outdated. Without a network the update fails, and so does the next step.
    await apt("update").catch(() => undefined);
    await apt("install", "--yes", "--no-install-recommends", packageName);
    return undefined;
  } catch (error) {
    return (error as Error).message.trim().split("\n").at(-1) ?? "failed";
  }
}
