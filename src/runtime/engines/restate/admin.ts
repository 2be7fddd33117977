import { Fault } from "../../../kernel/index.ts";

/** An endpoint that is registered with Restate. */
export interface Deployment {
  readonly id: string;
  readonly uri: string;
  /** When it was registered, as ISO 8601 text. */
  readonly createdAt: string;
  /** Names and revisions of the services that the endpoint serves. */
  readonly services: readonly { readonly name: string; readonly revision: number }[];
  /** Number of invocations that still run on it. */
  readonly openInvocations: number;
}

interface StoredDeployment {
  readonly id: string;
  readonly uri: string;
  readonly created_at: string;
  readonly services: readonly { readonly name: string; readonly revision: number }[];
}

/** Registers, lists and removes the endpoints of workers through the admin API of Restate. */
export class RestateAdmin {
  readonly #url: string;

  constructor(adminUrl: string) {
    this.#url = adminUrl.replace(/\/+$/u, "");
  }

  /** Registers the endpoint at `uri`. New slices then run on it. Registering it again reads its services again. */
  async deploy(uri: string): Promise<string> {
    const body = { uri, force: true };
    return (await this.#request<{ readonly id: string }>("POST", "/deployments", body)).id;
  }

  /** Returns the deployments, the newest first. */
  async list(): Promise<readonly Deployment[]> {
    const { deployments } = await this.#request<{ readonly deployments: readonly StoredDeployment[] }>(
      "GET",
      "/deployments",
    );
    const rows = await this.query<{ readonly id: string; readonly open: number }>(
      "SELECT pinned_deployment_id AS id, count(*) AS open FROM sys_invocation WHERE pinned_deployment_id IS NOT NULL AND status <> 'completed' GROUP BY pinned_deployment_id",
    );
    const open = new Map(rows.map((row) => [row.id, row.open]));
    return deployments
      .map(({ id, uri, created_at: createdAt, services }) => ({
        id,
        uri,
        createdAt,
        services,
        openInvocations: open.get(id) ?? 0,
      }))
      .toSorted((a, b) => b.createdAt.localeCompare(a.createdAt));
  }

  /**
   * Removes each deployment that no service uses any more and that has no open invocation, and returns them. A service
   * uses its deployment with the highest revision.
   */
  async drain(): Promise<readonly Deployment[]> {
    const all = await this.list();
    const newest = new Map<string, number>();
    for (const { services } of all)
      for (const { name, revision } of services)
        newest.set(name, Math.max(revision, newest.get(name) ?? revision));
    const drained = all.filter(
      ({ services, openInvocations }) =>
        openInvocations === 0 && services.every(({ name, revision }) => revision < (newest.get(name) ?? 0)),
    );
    for (const { id } of drained) await this.#request("DELETE", `/deployments/${id}?force=true`);
    return drained;
  }

  /** Runs a query on the tables of Restate, such as `sys_invocation`. */
  async query<Row>(sql: string): Promise<readonly Row[]> {
    return (await this.#request<{ readonly rows: readonly Row[] }>("POST", "/query", { query: sql })).rows;
  }

  async #request<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    let response: Response;
    let text: string;
    try {
      response = await fetch(this.#url + path, {
        method,
        headers: { "content-type": "application/json", accept: "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(30_000),
      });
      text = await response.text();
    } catch (error) {
      throw new Fault(
        "engine_unavailable",
        `the admin API of Restate at ${this.#url} cannot be reached; check the address`,
        { cause: error },
      );
    }
    if (!response.ok)
      throw new Fault(
        "engine_unavailable",
        `the admin API of Restate at ${this.#url} refused ${method} ${path}: ${response.status} ${text.slice(0, 400)}`,
      );
    return (text === "" ? {} : JSON.parse(text)) as Answer;
  }
}
