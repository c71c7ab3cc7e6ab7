/** ZMTP 3 frames (RFC 23, "Framing"). */

/** Bounds on what one peer can make us hold. */
export interface WireLimits {
  /** Largest body of one frame, in bytes; checked before allocation. */
  readonly maxFrameBytes: number;
  /** Largest sum of the bodies of one message, in bytes. */
  readonly maxMessageBytes: number;
  /** Most frames of one message. */
  readonly maxFrames: number;
  /** Largest command, in bytes. */
  readonly maxCommandBytes: number;
  /** Most bytes that wait to be sent. */
  readonly maxPendingBytes: number;
}
