/** The byte-level vectors of `test/fixtures/zmtp-vectors.json`, decoded. */

import fixture from "../fixtures/zmtp-vectors.json";
import { hex } from "./zmtp-peer.ts";

/** One thing that the scripted peer does. */
export type VectorStep =
  | { readonly kind: "send"; readonly pauseMs: number; readonly bytes: Uint8Array }
  | { readonly kind: "await"; readonly what: "ready" | "request" | number }
  | { readonly kind: "end"; readonly how: "close" | "reset" };

/** What came out: frames and contexts in hex, so that a failure can be read. */
export interface VectorOutcome {
  readonly messages: readonly (readonly string[])[];
  readonly pongs: readonly string[];
  /** The code of the error that ended it; undefined while the connection stands. */
  readonly closes: string | undefined;
}

/** A peer's script and what must come of it. */
export interface Vector extends VectorOutcome {
  readonly id: string;
  readonly title: string;
  readonly role: "sub" | "dealer" | "req";
  readonly steps: readonly VectorStep[];
}

interface FixtureStep {
  readonly send?: string;
  readonly sendEach?: string;
  readonly pauseMs?: number;
  readonly fill?: string;
  readonly times?: number;
  readonly await?: string;
  readonly count?: number;
  readonly end?: string;
}

type FixtureMessage =
  | readonly string[]
  | { readonly message?: readonly string[]; readonly fill?: string; readonly times: number };

/** Size of the writes that a `fill` is sent in. */
const WRITE_BYTES = 64 * 1024;

/** Bodies longer than this are compared by size and hash. */
const SHOWN_BYTES = 1024;

/** All vectors, in the order of the file. */
export const vectors: readonly Vector[] = fixture.vectors.map((vector) => ({
  id: vector.id,
  title: vector.title,
  role: vector.role as Vector["role"],
  steps: (vector.steps as readonly FixtureStep[]).flatMap(decodeStep),
  messages: (vector.messages as readonly FixtureMessage[]).flatMap(decodeMessage),
  pongs: "pongs" in vector ? (vector.pongs as string[]) : [],
  closes: "closes" in vector ? vector.closes : undefined,
}));

/** A body for an outcome: hex, or size and hash. */
export function showBody(body: Uint8Array): string {
  return body.length <= SHOWN_BYTES ? body.toHex() : `${body.length} bytes ${Bun.hash(body)}`;
}

function decodeStep(step: FixtureStep): VectorStep[] {
  const pauseMs = step.pauseMs ?? 0;
  if (step.send !== undefined) return [{ kind: "send", pauseMs, bytes: hex(step.send) }];
  if (step.sendEach !== undefined) {
    return [...hex(step.sendEach)].map((octet) => {
      return { kind: "send", pauseMs, bytes: Uint8Array.of(octet) };
    });
  }
  if (step.fill !== undefined) {
    return inWrites(repeat(step)).map((bytes) => ({ kind: "send", pauseMs, bytes }));
  }
  if (step.end === "close" || step.end === "reset") return [{ kind: "end", how: step.end }];
  if (step.await === "bytes") return [{ kind: "await", what: step.count ?? 0 }];
  return [{ kind: "await", what: step.await as "ready" | "request" }];
}

function inWrites(bytes: Uint8Array): Uint8Array[] {
  const count = Math.ceil(bytes.length / WRITE_BYTES);
  return Array.from({ length: count }, (_, at) => {
    return bytes.subarray(at * WRITE_BYTES, (at + 1) * WRITE_BYTES);
  });
}

function decodeMessage(message: FixtureMessage): string[][] {
  if (!("times" in message)) return [message.map((frame) => showBody(hex(frame)))];
  if (message.fill !== undefined) return [[showBody(repeat(message))]];
  const frames = (message.message ?? []).map((frame) => showBody(hex(frame)));
  return Array.from({ length: message.times }, () => frames);
}

function repeat({ fill, times }: { readonly fill?: string; readonly times?: number }): Uint8Array {
  const unit = hex(fill ?? "");
  const bytes = new Uint8Array(unit.length * (times ?? 0));
  for (let at = 0; at < bytes.length; at += unit.length) bytes.set(unit, at);
  return bytes;
}
