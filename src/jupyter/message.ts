/**
 * Jupyter messages as values: the parts of the messaging specification
 * (jupyter-client.readthedocs.io/en/stable/messaging.html) that we use. Field
 * names are those of the wire. Content comes from another program and is not
 * checked beyond being an object, so every field that a foreign kernel may
 * leave out is optional here.
 */

/** What our headers say; kernels adapt their replies to it ("4.1" would make them old). */
export const PROTOCOL_VERSION = "5.3";

/** The request for the kernel's name, version and features; answered on shell and, by most kernels, on control. */
export const KERNEL_INFO_REQUEST = "kernel_info_request";

const USERNAME = "prime-agent";

/** Names a message. Ids are opaque: lengths and forms differ between kernels. */
export interface Header {
  msg_id: string;
  session: string;
  username: string;
  /** ISO 8601; some kernels leave it out, and others rewrite it when they echo ours. */
  date?: string;
  msg_type: string;
  version: string;
  /** JEP 91: the subshell that shall run a shell request. Belongs to the header. */
  subshell_id?: string;
}

/** One message of any channel. What {@link deserialize} gives is not shared and may be kept. */
export interface JupyterMessage<C = Record<string, unknown>> {
  /** The frames before the delimiter: routing ids, or the topic of an IOPub message; often none. */
  identities: Uint8Array[];
  header: Header;
  /** The header of the request that this message answers; `{}` if there is none. Match on `msg_id` only. */
  parent_header: Partial<Header>;
  metadata: Record<string, unknown>;
  content: C;
  /** Raw frames after the four JSON frames. Not covered by the signature. */
  buffers: Uint8Array[];
}

/** The fields of a reply that say how the request went. Foreign kernels leave out any of them. */
export interface ReplyStatus {
  /** `aborted` stands for a request that was dropped unrun; some kernels say `abort` or plain `error`. */
  status?: "ok" | "error" | "aborted" | "abort";
  ename?: string;
  evalue?: string;
  traceback?: string[];
}

/** `execute_request`. ipykernel 6 gives no reply at all if one of the fields is missing. */
export interface ExecuteRequest {
  code: string;
  silent: boolean;
  store_history: boolean;
  user_expressions: Record<string, string>;
  allow_stdin: boolean;
  stop_on_error: boolean;
}

/** One evaluated entry of `user_expressions`: MIME data, or an error of its own. */
export interface ExpressionResult extends ReplyStatus {
  data?: MimeBundle;
  metadata?: Record<string, unknown>;
}

/** `execute_reply`. */
export interface ExecuteReply extends ReplyStatus {
  execution_count?: number | null;
  user_expressions?: Record<string, ExpressionResult>;
  payload?: Array<Record<string, unknown>>;
}

/** Representations of one value by MIME type; JSON types hold values, all others strings. */
export type MimeBundle = Record<string, unknown>;

/** `stream` on IOPub. Kernels merge prints: a message is not a line. */
export interface StreamContent {
  name: "stdout" | "stderr";
  text: string;
}

/** `display_data` and `update_display_data` on IOPub. */
export interface DisplayData {
  data: MimeBundle;
  metadata?: Record<string, unknown>;
  transient?: { display_id?: string };
}

/** `execute_result` on IOPub: the value of a cell's last expression. */
export interface ExecuteResult extends DisplayData {
  execution_count?: number | null;
}

/** `error` on IOPub; in ipykernel it comes before the reply that repeats it. */
export interface ErrorContent {
  ename: string;
  evalue: string;
  /** Lines for a terminal, usually with ANSI colours. */
  traceback: string[];
}

/** `status` on IOPub. `idle` is not ordered against the reply. */
export interface StatusContent {
  execution_state: "busy" | "idle" | "starting" | (string & {});
}

/** `clear_output` on IOPub. */
export interface ClearOutput {
  wait?: boolean;
}

/** `kernel_info_reply`; only `status` can be relied on. */
export interface KernelInfoReply extends ReplyStatus {
  protocol_version?: string;
  implementation?: string;
  implementation_version?: string;
  language_info?: { name?: string; version?: string; [key: string]: unknown };
  banner?: string;
  supported_features?: string[];
}

/** `comm_open`: one side starts a comm; a target that the other side doesn't know is answered by `comm_close`. */
export interface CommOpen {
  comm_id: string;
  target_name: string;
  data: Record<string, unknown>;
}

/** `comm_msg`. */
export interface CommMsg {
  comm_id: string;
  data: Record<string, unknown>;
}

/** `comm_close`. */
export interface CommClose {
  comm_id: string;
  data?: Record<string, unknown>;
}

/** `input_request` on stdin; answered by `input_reply`. The kernel waits without limit. */
export interface InputRequest {
  prompt: string;
  password: boolean;
}

/** `input_reply` on stdin. */
export interface InputReply {
  value: string;
}

/** `shutdown_request` on control. */
export interface ShutdownRequest {
  restart: boolean;
}

/** Makes the header of a message that we send now. `msgId` must be new: ipykernel drops repeated messages unanswered. */
export function createHeader(
  msgType: string,
  msgId: string,
  session: string,
  subshellId?: string,
): Header {
  const header: Header = {
    msg_id: msgId,
    session,
    username: USERNAME,
    date: new Date().toISOString(),
    msg_type: msgType,
    version: PROTOCOL_VERSION,
  };
  if (subshellId !== undefined) header.subshell_id = subshellId;
  return header;
}
