/** A flood from a libzmq publisher: every message must arrive, signed and checked. */

import { receiveFlood } from "../../test/support/receive-flood.ts";
import type { Figure } from "./bench.ts";

const COUNT = 100_000;

/** 100,000 signed messages of 300 bytes from a pyzmq publisher. */
export async function publisherFlood(): Promise<Figure[]> {
  const { seconds, messagesPerSecond } = await receiveFlood({ count: COUNT, bytes: 300 });
  return [
    {
      name: "100,000 signed 300-byte messages from a pyzmq publisher, received whole",
      ours: `${messagesPerSecond.toLocaleString("en")} a second, ${seconds.toFixed(1)} s`,
      peer: "",
      bar: "all arrive",
      holds: true,
    },
  ];
}
