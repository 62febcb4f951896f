package grebe.spark;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;

import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Connects to a server that knows the same key, and proves to it that we do: a nonce from each side, and from each side a MAC over
 * both nonces and both ports. The key itself never crosses, and a connection that somebody relays has other ports.
 * `grebe.spark.question_server` is the other side.
 */
final class AuthenticatedSocketFactory {
  private static final int NONCE = 32;
  private static final int PROOF = 32;
  private static final int TIMEOUT_MS = 10_000;
  private static final String SERVER = "grebe planner 1 server";
  private static final String CLIENT = "grebe planner 1 client";

  private final SecureRandom random = new SecureRandom();
  private final SecretKeySpec key;

  AuthenticatedSocketFactory(byte[] key) {
    this.key = new SecretKeySpec(key, "HmacSHA256");
  }

  Socket createSocket(InetAddress address, int port) throws IOException {
    Socket socket = new Socket();
    try {
      socket.connect(new InetSocketAddress(address, port), TIMEOUT_MS);
      // A question or an answer of more than one packet would wait 40 ms for an acknowledgement of the first otherwise.
      socket.setTcpNoDelay(true);
      socket.setSoTimeout(TIMEOUT_MS);
      authenticate(socket);
      socket.setSoTimeout(0);
      return socket;
    } catch (IOException | RuntimeException | Error problem) {
      socket.close();
      throw problem;
    }
  }

  private void authenticate(Socket socket) throws IOException {
    byte[] ours = new byte[NONCE];
    random.nextBytes(ours);
    socket.getOutputStream().write(ours);
    byte[] theirs = new byte[NONCE];
    byte[] proof = new byte[PROOF];
    DataInputStream input = new DataInputStream(socket.getInputStream());
    input.readFully(theirs);
    input.readFully(proof);
    byte[] about = ByteBuffer.allocate(2 * NONCE + 2 * Integer.BYTES)
        .put(ours).put(theirs).putInt(socket.getLocalPort()).putInt(socket.getPort()).array();
    if (!MessageDigest.isEqual(proof, proof(SERVER, about))) {
      throw new IOException("what listens on port " + socket.getPort() + " is not the planner of this session");
    }
    socket.getOutputStream().write(proof(CLIENT, about));
  }

  private byte[] proof(String side, byte[] about) throws IOException {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(key);
      mac.update(side.getBytes(StandardCharsets.US_ASCII));
      return mac.doFinal(about);
    } catch (GeneralSecurityException problem) {
      throw new IOException(problem);
    }
  }
}
