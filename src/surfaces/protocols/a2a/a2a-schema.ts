import type { JsonObject, JsonValue } from "../../../kernel/index.ts";
import { schemaOf } from "../../http/schema/schema.ts";

/** The version of A2A that the server speaks. */
export const a2aVersion = "1.0";

/** The states of a task that the server reports. */
export type TaskState =
  | "TASK_STATE_SUBMITTED"
  | "TASK_STATE_WORKING"
  | "TASK_STATE_INPUT_REQUIRED"
  | "TASK_STATE_COMPLETED"
  | "TASK_STATE_FAILED"
  | "TASK_STATE_CANCELED"
  | "TASK_STATE_REJECTED";

/** A part of a message or an artifact on the wire. It has exactly one of `text`, `raw`, `url` and `data`. */
export type WirePart = {
  readonly text?: string;
  /** Bytes in base64. */
  readonly raw?: string;
  readonly url?: string;
  readonly data?: JsonValue;
  readonly mediaType?: string;
  readonly filename?: string;
};

/** A message on the wire. */
export type WireMessage = {
  readonly messageId: string;
  readonly contextId?: string;
  readonly taskId?: string;
  readonly role: "ROLE_USER" | "ROLE_AGENT";
  readonly parts: readonly WirePart[];
};

export type WireStatus = {
  readonly state: TaskState;
  readonly timestamp: string;
  readonly message?: WireMessage;
};

export type WireArtifact = {
  readonly artifactId: string;
  readonly name: string;
  readonly parts: readonly WirePart[];
};

/** A task on the wire. */
export type WireTask = {
  readonly id: string;
  readonly contextId: string;
  readonly status: WireStatus;
  readonly artifacts?: readonly WireArtifact[];
  readonly history?: readonly WireMessage[];
  readonly metadata: JsonObject;
};

/** One message of a stream. */
export type WireUpdate =
  | { readonly task: WireTask }
  | {
      readonly statusUpdate: {
        readonly taskId: string;
        readonly contextId: string;
        readonly status: WireStatus;
        readonly metadata: JsonObject;
      };
    }
  | {
      readonly artifactUpdate: {
        readonly taskId: string;
        readonly contextId: string;
        readonly artifact: WireArtifact;
        readonly append: boolean;
      };
    };

const shortText = { type: "string", maxLength: 512 } as const;
const id = { type: "string", minLength: 1, maxLength: 512 } as const;
const count = { type: "integer", minimum: 0 } as const;

// Fields that a later version of A2A adds are ignored, as its specification asks.
const part: JsonObject = {
  type: "object",
  properties: {
    text: { type: "string" },
    raw: { type: "string" },
    url: { type: "string", maxLength: 65_536 },
    mediaType: shortText,
    filename: shortText,
  },
  oneOf: ["text", "raw", "url", "data"].map((name) => ({ required: [name] })),
};

const message: JsonObject = {
  type: "object",
  properties: {
    messageId: id,
    contextId: shortText,
    taskId: shortText,
    role: { type: "string", enum: ["ROLE_USER"] },
    parts: { type: "array", items: part, minItems: 1, maxItems: 1_000 },
  },
  required: ["messageId", "role", "parts"],
};

const tenant = { type: "string", maxLength: 0, description: "The tenant is that of the token." } as const;

export interface SendParams {
  readonly message: WireMessage;
  readonly configuration?: {
    readonly historyLength?: number;
    readonly returnImmediately?: boolean;
    readonly taskPushNotificationConfig?: JsonObject;
  };
}

export const sendParams = schemaOf<SendParams>({
  type: "object",
  properties: {
    tenant,
    message,
    configuration: {
      type: "object",
      properties: {
        historyLength: count,
        returnImmediately: { type: "boolean" },
        taskPushNotificationConfig: { type: "object" },
      },
    },
  },
  required: ["message"],
});

export interface TaskParams {
  readonly id: string;
  readonly historyLength?: number;
}

export const taskParams = schemaOf<TaskParams>({
  type: "object",
  properties: { tenant, id, historyLength: count },
  required: ["id"],
});

export interface ListParams {
  readonly contextId?: string;
  readonly status?: TaskState | "TASK_STATE_UNSPECIFIED" | "TASK_STATE_AUTH_REQUIRED";
  readonly pageSize?: number;
  readonly pageToken?: string;
  readonly historyLength?: number;
  readonly statusTimestampAfter?: string;
  readonly includeArtifacts?: boolean;
}

export const listParams = schemaOf<ListParams>({
  type: "object",
  properties: {
    tenant,
    contextId: shortText,
    status: {
      type: "string",
      enum: [
        "TASK_STATE_UNSPECIFIED",
        "TASK_STATE_SUBMITTED",
        "TASK_STATE_WORKING",
        "TASK_STATE_INPUT_REQUIRED",
        "TASK_STATE_AUTH_REQUIRED",
        "TASK_STATE_COMPLETED",
        "TASK_STATE_FAILED",
        "TASK_STATE_CANCELED",
        "TASK_STATE_REJECTED",
      ],
    },
    pageSize: { type: "integer", minimum: 1, maximum: 100 },
    pageToken: { type: "string", maxLength: 2_048 },
    historyLength: count,
    statusTimestampAfter: { type: "string", maxLength: 64 },
    includeArtifacts: { type: "boolean" },
  },
});

export const noParams = schemaOf<JsonObject>({ type: "object", properties: { tenant } });
