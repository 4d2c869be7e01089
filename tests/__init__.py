"""The tests of cuggino: doubles and real agents here, one folder a room beside them."""
