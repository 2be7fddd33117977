import { spawn, type ChildProcess } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";

interface RestateServerOptions {
  /**
   * How often Restate asks a worker for a sign of life, and how long it waits for the sign. Default: the values of
   * Restate.
   */
  readonly keepAlive?: { readonly intervalMs: number; readonly timeoutMs: number };
  /** Number of partitions, each with separate connections. Default: 4. */
  readonly partitions?: number;
  /** Whether Restate signs its requests, so that workers may demand `identityKey`. Default: false. */
  readonly signs?: boolean;
}

/** A Restate server of its own for tests: on the loopback interface, with data in a temporary folder. */
export class RestateServer {
  readonly ingressUrl: string;
  readonly adminUrl: string;
  /** The public key of the server. `undefined` if it does not sign. */
  readonly identityKey: string | undefined;
  readonly #folder: string;
  readonly #environment: NodeJS.ProcessEnv;
  #process: ChildProcess | undefined;

  private constructor(
    folder: string,
    ports: readonly number[],
    { keepAlive, partitions = 4, signs = false }: RestateServerOptions,
  ) {
    const [ingress = 0, admin = 0, node = 0] = ports;
    this.#folder = folder;
    const keyFile = join(folder, "identity.pem");
    this.identityKey = signs ? writeKey(keyFile) : undefined;
    this.ingressUrl = `http://127.0.0.1:${ingress}`;
    this.adminUrl = `http://127.0.0.1:${admin}`;
    this.#environment = {
      PATH: process.env["PATH"],
      DO_NOT_TRACK: "1",
      RESTATE_DISABLE_TELEMETRY: "true",
      // The search for a newer version has no switch. With this proxy, which does not exist, it ends at once.
      HTTPS_PROXY: "http://127.0.0.1:9",
      RESTATE_BASE_DIR: folder,
      RESTATE_NODE_NAME: "test",
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_BIND_IP: "127.0.0.1",
      RESTATE_BIND_PORT: String(node),
      RESTATE_ADVERTISED_HOST: "127.0.0.1",
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      RESTATE_ADMIN__DISABLE_WEB_UI: "true",
      RESTATE_DEFAULT_NUM_PARTITIONS: String(partitions),
      RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: "128 MiB",
      RESTATE_LOG_FILTER: "error",
      ...(signs && { RESTATE_WORKER__INVOKER__REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE: keyFile }),
      ...(keepAlive !== undefined && {
        RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_INTERVAL: `${keepAlive.intervalMs}ms`,
        RESTATE_WORKER__INVOKER__HTTP2_KEEP_ALIVE_TIMEOUT: `${keepAlive.timeoutMs}ms`,
      }),
    };
  }

  static async start(options: RestateServerOptions = {}): Promise<RestateServer> {
    const ports = [await freePort(), await freePort(), await freePort()];
    const server = new RestateServer(await mkdtemp(join(tmpdir(), "reeve-restate-")), ports, options);
    await server.resume();
    return server;
  }

  /** Starts the server on its data, at the same addresses. */
  async resume(): Promise<void> {
    // The wrapper of the package leaves the server running when it is killed, so the program itself is started.
    this.#process = spawn(serverProgram(), ["--no-logo"], { env: this.#environment, stdio: "ignore" });
    const isReady = (): Promise<boolean> => this.#hasPartitions();
    const isHealthy = [`${this.ingressUrl}/restate/health`, `${this.adminUrl}/health`].map(
      (url) => () => isUp(url),
    );
    for (const isDone of [...isHealthy, isReady])
      while (!(await isDone())) {
        if (this.#process.exitCode !== null)
          throw new Error(`restate-server ended with ${this.#process.exitCode}`);
        await setTimeout(20);
      }
  }

  /** Whether the server finds all its partitions, which a healthy server may not do for a moment. */
  async #hasPartitions(): Promise<boolean> {
    const { ok } = await fetch(`${this.adminUrl}/query`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ query: "SELECT id FROM sys_invocation LIMIT 1" }),
    });
    return ok;
  }

  /** Ends the server as `kill -9` does. */
  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    this.#process = undefined;
  }

  async stop(): Promise<void> {
    await this.kill();
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 10 });
  }
}

/** Writes a new private key, and returns its public key as Restate prints it. */
function writeKey(file: string): string {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  writeFileSync(file, privateKey.export({ format: "pem", type: "pkcs8" }));
  // The last 32 bytes of the encoded form are the key itself.
  return `publickeyv1_${base58(publicKey.export({ format: "der", type: "spki" }).subarray(-32))}`;
}

const base58Digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

function base58(bytes: Uint8Array): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  for (; rest > 0n; rest /= 58n) text = `${base58Digits[Number(rest % 58n)]}${text}`;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return "1".repeat(Math.max(0, zeros)) + text;
}

function serverProgram(): string {
  const require = createRequire(import.meta.url);
  const wrapper = createRequire(require.resolve("@restatedev/restate-server/package.json"));
  const name = `@restatedev/restate-server-${process.platform}-${process.arch}/package.json`;
  return join(dirname(wrapper.resolve(name)), "bin", "restate-server");
}

async function isUp(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2_000) })).ok;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
